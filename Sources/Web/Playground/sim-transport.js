// Stepping, playing, and going to the next of something.

import { h } from "./dom.js";
import { effect, onEnd, signal } from "./signals.js";
import { topics } from "./sim-run.js";
import { choice } from "./widgets.js";

/** How fast a run is played: steps a second, or a share of real time. */
const speeds = [["s2", "2 steps/s"], ["s8", "8 steps/s"], ["s30", "30 steps/s"], ["s120", "120 steps/s"],
    ["t0.01", "time ÷ 100"], ["t0.1", "time ÷ 10"], ["t1", "real time"], ["t10", "time × 10"]];

const wanted = [["election", "election"], ["master", "new master"], ["votes", "vote"], ["commit", "commit"],
    ["violation", "broken promise"], ["death", "death"], ["faults", "fault"], ["clients", "client’s step"],
    ["disk", "write"], ["commands", "command"]];

/** What plays a run: { isPlaying, turn }. */
export function player(m) {
    const self = {
        isPlaying: signal(false), speed: signal("s8"), what: signal("election"), doesStop: signal(false),
        turn() {
            const run = m.run.peek();
            if (!self.isPlaying.peek() && run && m.step.peek() >= run.count) m.goTo(0);
            self.isPlaying.value = !self.isPlaying.peek();
        },
    };
    effect(() => {
        if (!self.isPlaying.value || !m.run.value) return;
        const run = m.run.peek();
        const stop = self.doesStop.value ? run.next(self.what.value, m.step.peek()) : null;
        const [unit, pace] = [self.speed.value[0], Number(self.speed.value.slice(1))];
        let [last, time, steps] = [performance.now(), run.timeOf(m.step.peek()), m.step.peek()];
        let frame = requestAnimationFrame(function play(now) {
            const by = Math.min(now - last, 250) / 1000;
            last = now;
            time += by * pace * 1e6;
            steps += by * pace;
            const next = Math.min(unit === "t" ? run.stepAt(time) : Math.floor(steps), stop ?? run.count, run.count);
            if (next !== m.step.peek()) m.goTo(next);
            if (next >= (stop ?? run.count)) return (self.isPlaying.value = false);
            frame = requestAnimationFrame(play);
        });
        onEnd(() => cancelAnimationFrame(frame));
    });
    return self;
}

const shapes = {
    first: "M7 5v14M19 5l-9 7 9 7z", back: "M17 5l-9 7 9 7z", play: "M7 4l13 8-13 8z", pause: "M8 5v14M16 5v14",
    next: "M7 5l9 7-9 7z", last: "M17 5v14M5 5l9 7-9 7z", plus: "M12 5v14M5 12h14", minus: "M5 12h14",
    whole: "M4 12h16M4 12l4-4M4 12l4 4M20 12l-4-4M20 12l-4 4",
};

export const shape = (name) => h("svg.icon", { viewBox: "0 0 24 24", width: "16", height: "16", "aria-hidden": "true" },
    h("path", { d: shapes[name] }));

const iconButton = (name, label, onclick) => h("button.icon-button", { type: "button", "aria-label": label,
    title: label, onclick }, shape(name));

export function transport(m, play) {
    const names = () => m.run.value?.messages.names ?? [];
    const options = () => [...wanted.map(([value, text]) => h("option", { value }, text)),
        h("optgroup", { label: "A message" },
            [...names()].sort().map((name) => h("option", { value: `message ${name}` }, name)))];
    const what = h("select", { "aria-label": "What is looked for",
        onchange: () => (play.what.value = what.value) });
    effect(() => {
        what.replaceChildren(...options());
        what.value = play.what.value;
    });
    const jump = (by) => {
        const text = what.selectedOptions[0]?.textContent ?? "such step";
        said.textContent = m.jump(play.what.peek(), by) ? "" : `No ${by > 0 ? "further" : "earlier"} ${text}.`;
    };
    const said = h("span.muted", { role: "status" });
    effect(() => {
        m.step.value;
        said.textContent = "";
    });
    return h("div.sim-transport", null,
        h("div.row.tight", { role: "group", "aria-label": "Steps" },
            iconButton("first", "To the beginning", () => m.goTo(0)),
            iconButton("back", "A step back", () => m.goTo(m.step.peek() - 1)),
            h("button.icon-button.primary", { type: "button", onclick: play.turn,
                "aria-label": () => (play.isPlaying.value ? "Pause" : "Play"),
                title: () => (play.isPlaying.value ? "Pause" : "Play") },
                () => shape(play.isPlaying.value ? "pause" : "play")),
            iconButton("next", "A step on", () => m.goTo(m.step.peek() + 1)),
            iconButton("last", "To the end", () => m.goTo(Infinity)),
            h("select.speed", { "aria-label": "Speed", onchange: (event) => (play.speed.value = event.target.value) },
                speeds.map(([value, text]) => h("option", { value, selected: value === play.speed.peek() }, text)))),
        h("div.row.tight", { role: "group", "aria-label": "Go to" },
            h("button", { type: "button", id: "jump-back", onclick: () => jump(-1), "aria-label": "The one before" },
                "←"), what,
            h("button", { type: "button", id: "jump-next", onclick: () => jump(1) }, "Next →"),
            h("label.check", null, h("input", { type: "checkbox",
                onchange: (event) => (play.doesStop.value = event.target.checked) }),
            h("span", null, "stop there")), said),
        search(m));
}

/** How much is seen, and whether as diagram or as list. */
export function viewing(m) {
    return h("div.row.sim-viewing", null,
        h("button.sim-pick", { type: "button", id: "tell", title: "Tell the run in sentences",
            "aria-pressed": () => String(m.isTold.value),
            hidden: () => /(^|&)story=/.test(m.run.value?.info.words ?? ""),
            onclick: () => (m.isTold.value = !m.isTold.peek()) }, "Sentences"),
        h("div.row.tight", { role: "group", "aria-label": "Zoom", hidden: () => m.isList.value },
            iconButton("minus", "Farther", () => m.zoom(1.6)),
            iconButton("plus", "Closer", () => m.zoom(1 / 1.6)),
            iconButton("whole", "The whole run", () => m.whole())),
        choice("How it is shown", [["diagram", "Diagram"], ["list", "List"]],
            () => (m.isList.value ? "list" : "diagram"), (value) => (m.isList.value = value === "list")));
}

function search(m) {
    const field = h("input.search", {
        type: "search", "aria-label": "Search in what happens", placeholder: "Search",
        spellcheck: "false", autocomplete: "off", maxlength: "100", "data-search": true,
        oninput: () => {
            clearTimeout(timer);
            timer = setTimeout(() => (m.search.value = field.value.trim()), 200);
        },
        onkeydown: (event) => {
            if (event.key !== "Enter") return;
            m.search.value = field.value.trim();
            m.nextFound(event.shiftKey ? -1 : 1);
        },
    });
    let timer = null;
    effect(() => {
        if (document.activeElement !== field) field.value = m.search.value;
    });
    return h("div.row.tight.sim-search", null, field,
        h("span.muted", { role: "status" }, () => (m.search.value ? foundText(m) : "")),
        h("span.row.tight", { hidden: () => m.found.value.length === 0 },
            h("button", { type: "button", onclick: () => m.nextFound(-1), "aria-label": "The match before" }, "↑"),
            h("button", { type: "button", onclick: () => m.nextFound(1), "aria-label": "The next match" }, "↓")));
}

/** Which messages and trackers are drawn. */
export function filters(m) {
    const turn = (set, name, isOn, content) => h("button.filter", { type: "button",
        "aria-pressed": () => String(isOn()), onclick: () => m.turnHidden(set, name) }, content);
    return h("div.sim-filters", null,
        h("div.filters", { role: "group", "aria-label": "Messages that are drawn" }, topics.map((one) =>
            turn(m.hidden, one.name, () => !m.hidden.value.has(one.name), [
                h("span.sim-swatch", { "aria-hidden": "true", style: { background: `var(--${one.color})` } }),
                one.title]))),
        h("div.filters", { role: "group", "aria-label": "Trackers that are drawn" }, h("span.muted", null, "Trackers"),
            () => m.names().map((name, place) => turn(m.hiddenLanes, place, () => !m.hiddenLanes.value.has(place),
                `${name}`))));
}

function foundText(m) {
    const all = m.found.value;
    if (!all.length) return "Nothing has that in it.";
    const at = all.indexOf(m.step.value);
    return at < 0 ? `${all.length} found` : `${at + 1} of ${all.length}`;
}
