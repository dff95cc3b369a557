// Timeline: elections, votes, commits, hand-overs and faults as lanes over time, or as a list that says the same.

import { choice, heading } from "./widgets.js";
import { every, h, named } from "./dom.js";
import { exact, seconds } from "./format.js";
import { lanes } from "./lanes.js";
import { href, look, route } from "./route.js";
import { computed, effect, signal } from "./signals.js";
import { isLive, state, tick, trackerNow, transition, transitionCount, transitions } from "./stream.js";
import { cone, kinds, look as lookOf } from "./story.js";
import { bigTable } from "./table.js";

const spans = [["10000", "10 s"], ["60000", "1 min"], ["300000", "5 min"], ["900000", "15 min"], ["all", "All"]];
const frames = 200;

export function timelinePage() {
    const query = () => route.value.query;
    const events = computed(() => {
        transitionCount.value;
        return [...transitions()].sort((a, b) => a.time - b.time || a.number - b.number);
    });
    const hidden = computed(() => new Set((query().hide ?? "").split(",").filter(Boolean)));
    const chosen = () => (query().event ? Number(query().event) : null);
    const frame = signal(0);
    every(frames, () => isLive.peek() && query().to === undefined && (frame.value += 1));
    const now = () => {
        frame.value;
        tick.value;
        return trackerNow();
    };
    /** What is seen: fixed by `from` and `to`, or the last `span` up to now. */
    const view = () => {
        const { from, to } = query();
        if (from !== undefined && to !== undefined && Number(to) > Number(from)) return { from: Number(from),
            to: Number(to) };
        const end = now();
        const whole = Math.max(end - (events.value[0]?.time ?? end - 60_000), 1000);
        return { from: end - (query().span === "all" ? whole : Number(query().span ?? 60_000)), to: end };
    };
    const moved = ({ from, to }) => {
        // Whoever comes to the present stays with it.
        const isNow = to >= trackerNow() - (to - from) * 0.002;
        look(isNow ? { from: null, to: null, span: Math.round(to - from) }
            : { from: Math.round(from), to: Math.round(to) });
    };
    const select = (number) => look({ event: number });
    const picture = lanes({
        label: "Transitions of each tracker over time. The list view has the same events. Keys: arrows, plus, minus, Home, End, N, P.",
        events: () => events.value, lanes: () => lanesOf(events.value),
            masterNow: () => state.value.status.cluster.master,
        now, view, moved, selected: chosen, select, isHidden: (kind) => hidden.value.has(kind),
    });
    // A link to a transition shows it where it is.
    let shown = null;
    effect(() => {
        const one = transitionCount.value && chosen() !== null ? transition(chosen()) : null;
        if (!one || shown === chosen()) return;
        shown = chosen();
        const { from, to } = view();
        if (one.time < from || one.time > to) moved({ from: one.time - 5000, to: one.time + 5000 });
    });
    const isList = computed(() => query().view === "list");
    return h("div.filled", null,
        heading("Timeline",
            choice("How it is shown", [["lanes", "Lanes"], ["list", "List"]], () => (isList.value ? "list" : "lanes"),
                (value) => look({ view: value === "list" ? "list" : null })),
            h("span.row", { hidden: () => isList.value },
                choice("Time shown", spans, () => (query().from ? null : String(query().span ?? 60_000)),
                    (value) => look({ span: value, from: null, to: null })),
                h("button.quiet", { type: "button", hidden: () => query().from === undefined,
                    onclick: () => look({ from: null, to: null }) }, "Back to now"))),
        filters(hidden),
        h("div.grow", null, () => (isList.value ? eventList(events, hidden, select)
            : h("div", null, picture, chosenPanel(events, chosen, select)))));
}

function lanesOf(events) {
    const ids = new Set(state.value.status.cluster.trackers.map((one) => one.id));
    for (const one of events) ids.add(one.tracker);
    return [...ids].sort((a, b) => a - b).map((id) => ({ id, name: `Tracker ${id}` }));
}

function filters(hidden) {
    return h("div.filters", { role: "group", "aria-label": "What is shown" },
        Object.entries(kinds).reverse().map(([kind, { glyph, color, name }]) =>
        h("button.filter", {
            type: "button", "aria-pressed": () => String(!hidden.value.has(kind)),
            onclick: () => {
                const next = new Set(hidden.peek());
                if (!next.delete(kind)) next.add(kind);
                look({ hide: [...next].join(",") || null });
            },
        }, h("span.glyph", { "aria-hidden": "true", style: { color: `var(--${color})` } }, glyph), name)));
}

// MARK: What was chosen

function chosenPanel(events, chosen, select) {
    const hint = "Wheel or + and − zoom, dragging or the arrows move. Click a transition, or press N, to see what led to it and what came of it.";
    return h("section.chosen", { "aria-live": "polite", "aria-label": "The chosen transition" }, () => {
        const number = chosen();
        if (number === null) return h("p.muted", null, hint);
        const one = transitionCount.value && transition(number);
        if (!one) return h("p.muted", null, "This tracker does not remember that transition (any more).");
        const { causes, effects } = cone(events.value, number);
        return h("div", null,
            h("div.heading", null, h("h2", null, glyph(one), named(one.text)),
                h("button.quiet", { type: "button", onclick: () => select(null) }, "Let go")),
            h("p.muted", null, `${exact(one.at)} · tracker ${one.tracker} · ${one.kind}`
                + (one.epoch ? ` · epoch ${one.epoch.round}.${one.epoch.id}` : "") + (one.count
                    ? ` · ${one.count} entries` : "")),
            h("div.columns", null,
                related("What led to it", causes, one, select, "It has no cause that is remembered."),
                related("What came of it", effects, one, select, "Nothing has come of it so far.")));
    });
}

function related(title, numbers, origin, select, none) {
    const most = 40;
    return h("section", null, h("h3", null, `${title} (${numbers.length})`),
        numbers.length === 0 ? h("p.muted", null, none) : h("ol.related", null, numbers.slice(0, most).map((number) => {
            const one = transition(number);
            const by = (one.time - origin.time) / 1000;
            return h("li", null, h("button.link", { type: "button", onclick: () => select(number) },
                h("span.when", null, `${by < 0 ? "−" : "+"}${Math.abs(by).toFixed(3)} s`), glyph(one),
                    h("span", null, named(one.text))));
        })),
        numbers.length > most ? h("p.muted", null, `… and ${numbers.length - most} more.`) : null);
}

const glyph = (one) => {
    const { glyph: sign, color } = lookOf(one.kind);
    return h("span.glyph", { "aria-hidden": "true", style: { color: `var(--${color})` } }, sign);
};

// MARK: The list

/** The same events as a table, newest first. */
function eventList(events, hidden, select) {
    const columns = [
        { name: "Time", class: "time" }, { name: "Tracker", class: "tracker" }, { name: "Kind", class: "kind.wide" },
            { name: "What happened" },
        { name: "Because of", class: "cause.wide" },
    ];
    const table = bigTable({
        label: "Transitions, newest first", columns, noun: "transition", empty: "Nothing of that kind is remembered.",
        what: () => [...hidden.value].join(), key: (one) => one.number,
        load: async (after, limit) => {
            const rows = events.peek().filter((one) => !hidden.peek().has(one.kind)).reverse();
            const at = after === null ? 0 : rows.findIndex((one) => one.number === after) + 1;
            const some = rows.slice(at, at + limit);
            return { rows: some, next: at + limit < rows.length ? some.at(-1).number : null, total: rows.length };
        },
        row: (one) => [
            h("td.time", { title: () => one.value.at }, () => exact(one.value.time).slice(0, 8),
                h("span.wide", null, () => exact(one.value.time).slice(8))),
            h("td.tracker", null, () => one.value.tracker),
            h("td.kind.wide", null, () => [glyph(one.value), h("span", null, one.value.kind)]),
            h("td.name.two-lines", null, h("a", { href: () => href(["timeline"], { event: one.value.number }) },
                () => named(one.value.text))),
            h("td.cause.wide", null, () => causes(one.value)),
        ],
    });
    // Whoever reads further down is left in peace.
    effect(() => {
        transitionCount.value;
        if (table.element.querySelector(".scroller").scrollTop < 40) table.refresh();
    });
    return table.element;
}

function causes(one) {
    const known = (one.causes ?? []).map(transition).filter(Boolean);
    if (!known.length) return "";
    return h("span", { title: known.map((cause) => cause.text).join("; ") },
        `${known[0].text.slice(0, 60)}${known.length > 1 ? ` and ${known.length - 1} more` : ""}, ${seconds((one.time - known[0].time) / 1000)} before`);
}
