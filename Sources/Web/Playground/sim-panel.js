// Beside the diagram: the step, what was chosen, how each tracker stands and what the step has changed.

import { h, list, listen, named } from "./dom.js";
import { computed, effect, onEnd, signal } from "./signals.js";
import { counted } from "./format.js";
import { lastOf } from "./sim-client.js";
import { summary } from "./sim-diagram.js";
import { fate, kinds, secondsText, topics } from "./sim-run.js";
import { badge } from "./widgets.js";

/** Has a card take the focus when what had it in there is drawn anew, so that the keyboard keeps its place. */
export function keepsFocus(card) {
    let isInside = false;
    card.tabIndex = -1;
    listen(document, "focusin", (event) => (isInside = card.contains(event.target)));
    listen(document, "pointerdown", (event) => (isInside &&= card.contains(event.target)));
    const observer = new MutationObserver(() => {
        if (isInside && document.activeElement === document.body) card.focus({ preventScroll: true });
    });
    observer.observe(card, { childList: true, subtree: true });
    onEnd(() => observer.disconnect());
    return card;
}

// MARK: The step

export function stepCard(m) {
    return keepsFocus(h("section.card.sim-step", { "aria-label": "The step" }, () => {
        const run = m.run.value;
        const step = m.step.value;
        if (!run) return null;
        const [first, ...rest] = (run.lines[step] ?? "").split("\n")
            .filter((line) => !line.startsWith("VIOLATION ")).flatMap((line) => line.split("; "));
        const about = kinds.filter((_, bit) => run.kinds[step] & (1 << bit));
        const broken = run.violations.filter((one) => one.step === step);
        return [
            h("div.heading", null,
                h("h2", null, step ? `Step ${step.toLocaleString("en")}` : "Before anything"),
                h("span.muted", null, `of ${run.count.toLocaleString("en")} · ${secondsText(run.timeOf(step))}`)),
            h("p.sim-what", null, named(first || (step ? "nothing is told of it" : "No tracker has started."), 2000)),
            rest.length ? h("ul.sim-then", null, rest.map((one) => h("li", null, named(one, 2000)))) : null,
            broken.map((one) => h("p.sim-broken", null, h("b", null, one.invariant), " is broken: ",
                named(one.detail, 4000))),
            about.length ? h("p.row.tight", null, about.map((one) => badge("quiet-badge", one))) : null,
            sentHere(m, run, step),
            causes(m, run, step),
        ];
    }));
}

/** The messages that came in a step and were sent in it; each can be chosen. */
function sentHere(m, run, step) {
    const rows = [["Brought by", run.arrivedIn(step), true], ["Sends", run.sentIn(step), false]];
    return rows.map(([title, some, isFrom]) => {
        const groups = new Map();
        for (const one of some) {
            const name = run.messageName(one);
            if (!groups.has(name)) groups.set(name, []);
            groups.get(name).push(one);
        }
        if (!groups.size) return null;
        return h("div.sim-messages", null, h("span.muted", null, title), [...groups].slice(0, 12).map(([name, all]) =>
            h("span.sim-group", { role: "group", "aria-label": name },
                h("span", null, `${name} ${isFrom ? "from" : "to"}`),
                all.slice(0, 30).map((one) => messageButton(m, run, one, isFrom)))));
    });
}

function messageButton(m, run, message, isFrom) {
    const party = run.partyOf(message, isFrom);
    const isLost = run.messages.fate[message] === fate.lost;
    return h("button.sim-chip", {
        type: "button", "aria-pressed": () => String(m.chosen.value === message), onclick: () => m.choose(message),
        "aria-label": `${run.messageName(message)} ${isFrom ? "from" : "to"} ${party}${isLost ? ", lost" : ""}`,
        style: { "--chip": `var(--${topics[run.messages.topic[message]].color})` },
    }, party.replace("tracker ", ""), isLost ? h("span.bad-text", null, " ✕") : null);
}

/** Whether causes and effects are unfolded: they stay so from step to step. */
let areOpen = false;

function causes(m, run, step) {
    const link = (one) => h("button.link", { type: "button", onclick: () => m.goTo(one) },
        h("span.when", null, `${one}`), h("span", null, named(run.lines[one].split("; ")[0], 120)));
    const cause = run.causes[step];
    const effects = step ? run.effectsOf(step) : [];
    if (!(cause > 0) && !effects.length) return null;
    return h("details.sim-causes", { open: areOpen, ontoggle: (event) => (areOpen = event.target.open) },
        h("summary", null, `Because of ${cause > 0 ? `step ${cause}` : "nothing before"}`
            + `; leads to ${effects.length ? counted(effects.length, "step") : "nothing"}`),
        cause > 0 ? [h("h3", null, "What led to it"), link(cause)] : null,
        effects.length ? [h("h3", null, "What comes of it"), effects.slice(0, 12).map(link)] : null,
        h("label.check", null, h("input", { type: "checkbox", checked: () => m.isWhole.value,
            onchange: (event) => (m.isWhole.value = event.target.checked) }),
        h("span", null, "Also what could have had a part: the trackers’ own steps in between")));
}

// MARK: The chosen message

/** What a message is, and what may be done with it. */
export function messageCard(m, deeds) {
    const words = signal(null);
    const ask = lastOf((run, id) => m.engine.ask("message", run.info.words, id),
        (answer, [run, id], problem) => (words.value = { run, id, answer, problem: problem?.message }));
    effect(() => {
        const [run, one] = [m.run.value, m.chosen.value];
        if (run && one !== null) ask(run, run.messages.id[one]);
    });
    const content = (run, id) => {
        const known = words.value?.run === run && words.value.id === id ? words.value : null;
        if (!known) return "…";
        if (known.problem) return known.problem;
        return [known.answer?.content ?? known.answer?.text ?? "What was in it is not known."].flat().join("\n");
    };
    return h("section.card.sim-message", { "aria-label": "The chosen message", "aria-live": "polite",
        hidden: () => m.chosen.value === null }, () => {
        const [run, one] = [m.run.value, m.chosen.value];
        if (!run || one === null || one >= run.messageCount) return null;
        const topic = topics[run.messages.topic[one]];
        const { sentStep, arrivedStep, id } = run.messages;
        return [
            h("div.heading", null, h("h2", null, h("span.sim-swatch", { "aria-hidden": "true",
                style: { background: `var(--${topic.color})` } }), run.messageName(one)),
            h("button.quiet.end", { type: "button", onclick: () => m.choose(null) }, "Let go")),
            h("p", null, summary(run, one)),
            h("div.sim-content", null, () => content(run, id[one]).split("\n")
                .map((line) => h("p", null, named(line, 4000)))),
            h("div.row.tight", null,
                sentStep[one] ? h("button", { type: "button", onclick: () => m.goTo(sentStep[one]) },
                    "Where it is sent") : null,
                arrivedStep[one] && run.messages.fate[one] !== fate.lost ? h("button", { type: "button",
                    onclick: () => m.goTo(arrivedStep[one]) }, "Where it comes") : null),
            deeds(run, one),
        ];
    });
}

// MARK: Trackers

/** What the letters of a tracker's column mean, each with the tone of its badge. */
const roleWords = { M: ["master", "accent"], m: ["master, not serving yet", "accent"], S: ["slave", "good"],
    s: ["slave, not in good standing", "warn"], C: ["candidate", "warn"], N: ["newcomer", "quiet-badge"],
    F: ["fenced", "quiet-badge"], "-": ["down", "bad"] };

/** How each tracker stands at the step, and what the step has changed. */
export function trackersCard(m) {
    const states = signal(null);
    const pinned = signal(new Set());
    const kept = new Map();
    const stateAt = async (run, step) => {
        const key = `${run.info.words} ${step}`;
        if (!kept.has(key)) {
            kept.set(key, await m.engine.ask("state", run.info.words, step));
            if (kept.size > 8) kept.delete(kept.keys().next().value);
        }
        return kept.get(key);
    };
    const ask = lastOf(async (run, step) => [await stateAt(run, step),
        step > 0 ? await stateAt(run, step - 1) : null],
    (answer, [run, step], problem) => (states.value = { run, step, now: answer?.[0], before: answer?.[1],
        problem: problem?.message }));
    effect(() => m.run.value && ask(m.run.value, m.step.value));
    const places = computed(() => m.names().map((name, place) => ({ name, place })));
    const turn = (place) => {
        const next = new Set(pinned.peek());
        if (!next.delete(place)) next.add(place);
        pinned.value = next;
    };
    const isOfStep = (place) => Boolean(((m.run.value?.trackers[m.step.value] ?? 0) >>> place) & 1);
    const isOpen = (place) => isOfStep(place) || pinned.value.has(place);
    return h("section.card.sim-trackers", { "aria-label": "Trackers" }, h("h2", null, "Trackers"),
        list(h("div.sim-rows", null), () => places.value, ({ name, place }) => `${name} ${place}`, (one) => {
            const { name, place } = one.peek();
            return h("div.sim-row", { class: { current: false } },
                h("button.sim-standing", { type: "button", "aria-expanded": () => String(isOpen(place)),
                    onclick: () => turn(place), class: {} }, h("b", null, `Tracker ${name}`),
                () => standing(m.run.value, m.step.value, place)),
                () => (isOpen(place) ? items(states.value, m, place) : null));
        }));
}

/** A column such as "M 1.2 17", in words. */
export function columnWords(column) {
    const [role, epoch, entry] = column.split(" ");
    const [text, tone] = roleWords[role] ?? [role, "quiet-badge"];
    return [badge(tone, text), h("span.muted", null, epoch ? `${epoch} · entry ${entry}` : "")];
}

/** A tracker's column of the trace, in words, and whether the step has changed it. */
function standing(run, step, place) {
    if (!run) return null;
    const column = run.columnsAt(step)[place] ?? "-";
    const before = step > 0 ? run.columnsAt(step - 1)[place] ?? "-" : column;
    const changed = h("span.sim-changed", { title: `It was ${before}` }, "changed");
    return [...columnWords(column), column !== before ? changed : null];
}

function items(state, m, place) {
    if (!state || state.run !== m.run.value) return h("p.muted", null, "…");
    if (state.problem) return h("p.problem", null, state.problem);
    const now = state.now?.find((one) => one.place === place);
    const before = state.before?.find((one) => one.place === place);
    if (!now) return h("p.muted", null, "It is not there.");
    // Titles may be there several times, such as one for each request.
    const has = (items, title, text) => items.some((one) => one[0] === title && one[1] === text);
    const old = before?.items ?? [];
    const gone = old.filter(([title]) => !now.items.some(([other]) => other === title));
    return h("dl.pairs.sim-items", { class: { old: state.step !== m.step.value } }, now.items.map(([title, text]) => {
        const isOther = before && !has(old, title, text);
        const was = old.find((one) => one[0] === title && !has(now.items, ...one));
        return h(isOther ? "div.is-new" : "div", { title: isOther && was ? `It was: ${was[1]}` : null },
            h("dt", null, title), h("dd", null, named(text, 600)));
    }), gone.map(([title, text]) => h("div.is-new", { title: `It was: ${text}` }, h("dt", null, title),
        h("dd.muted", null, "no longer"))));
}
