// The explorer's walk: a small cluster, and at each state all that may happen next. Whoever walks chooses; the states
// that were visited are a graph to go back in.

import { appearance, property, ready, whenSized } from "./canvas.js";
import { tell } from "./dialog.js";
import { h, named } from "./dom.js";
import { look, route } from "./route.js";
import { effect, onEnd, signal } from "./signals.js";
import { columnWords } from "./sim-panel.js";
import { field, option } from "./sim-setup.js";
import { copyButton, heading } from "./widgets.js";

const networks = [["again", "again and again"], ["once", "once"], ["inOrder", "once, in order"]];
const asks = [["nodes", "Trackers", 1, 5, 3], ["elections", "Elections", 0, 15, 2],
    ["requests", "Requests", 0, 15, 1], ["restarts", "Restarts", 0, 15, 0]];

/** Choices that a link makes, at most. */
const mostChoices = 300;

export function walkPage(m) {
    const { query } = route.peek();
    const state = signal(null);
    const isAsking = signal(false);
    const graph = signal(new Map());
    const network = h("select", { name: "network" }, networks.map(([value, text]) =>
        option(value, text, value === (query.network ?? "once"))));
    const inputs = asks.map(([name, , least, most, usual]) => h("input", { name, type: "number", min: String(least),
        max: String(most), required: true, value: query[name] ?? String(usual) }));

    async function ask(name, ...words) {
        if (isAsking.peek()) return;
        isAsking.value = true;
        try {
            const answer = await m.engine.ask(name, ...words);
            if (answer.error) throw new Error(answer.error);
            visit(name, answer, words[0]);
        } catch (problem) {
            tell(problem.message, "bad");
        }
        isAsking.value = false;
    }

    /** Writes down the state, and the way by which it was reached. */
    function visit(name, answer, choice) {
        const next = name === "explore" ? new Map() : new Map(graph.peek());
        const known = next.get(answer.state);
        // By which choices a state was reached first: a link makes them anew.
        const choices = known?.choices ?? [...next.get(state.peek()?.state)?.choices ?? [], choice];
        next.set(answer.state, { depth: known?.depth ?? answer.depth, parents: answer.parents,
            isBroken: Boolean(answer.broken), choices: name === "explore" ? [] : choices });
        graph.value = next;
        state.value = answer;
        if (route.peek().path[0] === "walk") look({ choices: next.get(answer.state).choices.join(".") || null });
    }

    /** Makes the choices of a link. */
    async function follow(choices) {
        for (const one of choices.slice(0, mostChoices)) await ask("exploreChoose", one);
    }

    async function begin(choices = []) {
        const options = Object.fromEntries(inputs.map((one) => [one.name, Number(one.value)]));
        const { path } = route.peek();
        if (path[0] === "walk") look({ ...options, network: network.value });
        await ask("explore", { ...options, network: network.value });
        await follow(choices);
    }
    begin((query.choices ?? "").split(".").filter((one) => /^\d{1,6}$/.test(one)).map(Number));
    const choose = (number) => ask("exploreChoose", number);
    const onKey = (event) => {
        if (event.key !== "Backspace" || event.target.matches("input, select, textarea")) return;
        if (document.querySelector("dialog[open]")) return;
        event.preventDefault();
        ask("exploreBack");
    };
    addEventListener("keydown", onKey);
    onEnd(() => removeEventListener("keydown", onKey));
    return h("div", null, heading("Walk", copyButton(() => location.href, "Link")),
        h("p.muted", null, "A small cluster, and all that may happen next in it: choose. ", h("code", null,
            "tracker explore"), " walks through all of it; here you walk by yourself, and the promises watch."),
        h("form.sim-setup", {
            "aria-label": "The cluster",
            onsubmit: (event) => {
                event.preventDefault();
                begin();
            },
        }, inputs.map((one, at) => field(asks[at][1], one)), field("A message comes", network),
        h("button.primary", { type: "submit" }, "Begin")),
        () => (state.value ? walk(m, state, graph, isAsking, choose, ask) : h("p.muted", null, "…")));
}

function walk(m, state, graph, isAsking, choose, ask) {
    const { choices, path, trackers, broken, depth, visited } = state.value;
    return h("div.sim-walk", null,
        broken ? h("p.sim-broken", { role: "alert" }, h("b", null, broken.invariant), " is broken: ",
            named(broken.detail, 2000)) : null,
        h("div.columns", null,
            h("section.card", null, h("div.heading", null, h("h2", null, "What happens next?"),
                h("button", { type: "button", id: "walk-back", disabled: depth === 0,
                    onclick: () => ask("exploreBack") }, "Back")),
            choices.length ? h("ol.sim-choices", null, choices.map((one) => h("li", null,
                h(one.breaks ? "button.grave" : "button", { type: "button", disabled: () => isAsking.value,
                    onclick: () => choose(one.number) },
                    named(one.text, 300),
                    one.state !== null && one.state !== undefined && graph.value.has(one.state)
                        ? h("span.muted", null, ` (to state ${one.state}, where you were)`) : null))))
                : h("p.muted", null, "Nothing may happen any more.")),
            h("section.card", null, h("h2", null, `State ${state.value.state}`),
                h("p.muted", null, `${state.value.bounds}.`),
                h("p.muted", null, `${depth} ${depth === 1 ? "step" : "steps"} from the beginning; ${visited} ${
                    visited === 1 ? "state" : "states"} visited`),
                h("ul.plain", null, trackers.map((words, place) => h("li.row", null,
                    h("b", null, `Tracker ${place + 1}`), columnWords(words)))),
                graphPicture(graph, state, ask))),
        h("section.card", null, h("h2", null, "The way here"), path.length
            ? h("ol.sim-path", null, path.map((one) => h("li", null, named(one.text ?? one, 300))))
            : h("p.muted", null, "This is the beginning.")));
}

// MARK: The graph

const [gapX, gapY, inset] = [46, 30, 22];

/** The states that were visited, by their distance from the beginning; a click goes back to one. */
function graphPicture(graph, state, ask) {
    const canvas = h("canvas.sim-graph", { role: "img", "aria-label": () =>
        `The ${graph.value.size} states that were visited; this is state ${state.value.state}` });
    const places = () => {
        const rows = new Map();
        const result = new Map();
        for (const [id, one] of graph.value) {
            const row = rows.get(one.depth) ?? 0;
            rows.set(one.depth, row + 1);
            result.set(id, { x: inset + one.depth * gapX, y: inset + row * gapY, one });
        }
        return result;
    };
    const draw = () => {
        const all = places();
        canvas.style.width = `${Math.max(...[...all.values()].map((one) => one.x)) + inset}px`;
        canvas.style.height = `${Math.max(...[...all.values()].map((one) => one.y)) + inset}px`;
        const room = ready(canvas);
        if (!room) return;
        const { pen } = room;
        pen.strokeStyle = property("edge");
        for (const { x, y, one } of all.values()) {
            for (const parent of one.parents) {
                const from = all.get(parent);
                if (!from) continue;
                pen.beginPath();
                pen.moveTo(from.x, from.y);
                pen.bezierCurveTo(from.x + gapX / 2, from.y, x - gapX / 2, y, x, y);
                pen.stroke();
            }
        }
        for (const [id, { x, y, one }] of all) {
            pen.fillStyle = property(one.isBroken ? "bad" : id === state.value.state ? "accent" : "surface");
            pen.strokeStyle = property(one.isBroken ? "bad" : "accent");
            pen.lineWidth = 1.5;
            pen.beginPath();
            pen.arc(x, y, 9, 0, 7);
            pen.fill();
            pen.stroke();
            pen.fillStyle = property(one.isBroken || id === state.value.state ? "surface" : "ink");
            pen.font = `9px ${property("font")}`;
            pen.textAlign = "center";
            pen.textBaseline = "middle";
            pen.fillText(String(id), x, y + 0.5);
        }
    };
    effect(() => {
        appearance.value;
        draw();
    });
    whenSized(canvas, draw);
    canvas.addEventListener("click", (event) => {
        for (const [id, { x, y }] of places()) {
            if (Math.hypot(event.offsetX - x, event.offsetY - y) < 13) return ask("exploreGoto", id);
        }
    });
    const goTo = h("select", { "aria-label": "Go to a state that was visited",
        onchange: (event) => event.target.value && ask("exploreGoto", Number(event.target.value)) },
        h("option", { value: "" }, "Go to a state …"), [...graph.value.keys()].map((id) => h("option", { value: id },
            `State ${id}`)));
    return h("div.sim-graph-box", null, h("div.sim-graph-scroll", null, canvas), goTo);
}
