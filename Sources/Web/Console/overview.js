// Overview: how the cluster is in one sentence, its figures, what is wrong, the last minutes as charts, what happened
// last.

import { hues } from "./canvas.js";
import { chart } from "./charts.js";
import { h, list, named } from "./dom.js";
import { count, exact, seconds, short } from "./format.js";
import { href, look, route } from "./route.js";
import { sentence } from "./sentence.js";
import { computed } from "./signals.js";
import { asOf, samples, state, tick, trackerNow, transitionCount, transitions } from "./stream.js";
import { elections, look as lookOf, outages } from "./story.js";
import { choice, figure } from "./widgets.js";

const spans = [["60", "1 min"], ["300", "5 min"], ["600", "10 min"]];

export function overviewPage() {
    const past = computed(() => {
        transitionCount.value;
        return [...transitions()];
    });
    const told = computed(() => sentence(state.value, past.value));
    const cluster = () => state.value.status.cluster;
    return h("div", null,
        h("h1.unseen", { tabindex: "-1" }, "Overview"),
        h("div.sentence", { class: () => ({ good: told.value.tone === "good", warn: told.value.tone === "warn",
            bad: told.value.tone === "bad" }) },
            h("span.dot", { "aria-hidden": "true" }), h("p", { id: "sentence" }, () => told.value.text)),
        h("p.muted", { id: "as-of", hidden: () => asOf() === "" }, asOf),
        findings(cluster),
        figures(cluster),
        h("div.toolbar", null, choice("Time shown", spans, () => route.value.query.span ?? "300",
            (value) => look({ span: value })),
            h("span.muted.key", null, "▲ an election or a hand-over", " · ", "shaded: a fault")),
        h("div.charts", null, charts(past)),
        latest(past));
}

function findings(cluster) {
    return h("section.findings", { "aria-label": "What is found", hidden: () => cluster().findings.length === 0 },
        list(h("ul", null), () => cluster().findings, (one) => `${one.code} ${one.text}`, (one) =>
            h("li", { class: () => ({ bad: one.value.isSilence, warn: !one.value.isSilence }) },
                h("b", null, () => (one.value.isSilence ? "Answers nobody: " : "Found: ")), named(one.peek().text))));
}

function figures(cluster) {
    const sample = () => state.value.sample ?? {};
    const up = () => (sample().trackers ?? []).filter((one) => one.isUp);
    const master = () => up().find((one) => one.isMaster);
    return h("dl.figures", null,
        figure("Announces/s", () => count(up().reduce((sum, one) => sum + one.announcesPerSecond, 0)),
            "Of all trackers together"),
        figure("Commit, median", () => seconds(master()?.commitSeconds?.median),
            "As the master measures it: from the proposal of an entry until it is decided"),
        figure("Commit, 99 %", () => seconds(master()?.commitSeconds?.p99), "99 of 100 entries are decided within"),
        figure("Swarms", () => count(sample().swarms)),
        figure("Seeders", () => count(sample().seeders)),
        figure("Leechers", () => count(sample().leechers)),
        figure("Commit index", () => count(cluster().commitIndex), "The last entry that is decided"),
        figure("Epoch", () => `${cluster().epoch.round}.${cluster().epoch.id}`,
            "The round and the id of a master’s term"));
}

// MARK: Charts

/** Charts of which each tracker, or each value, is shown by itself: `each=announces,swarms` in the address. */
const apart = () => new Set((route.value.query.each ?? "").split(",").filter(Boolean));

function both(name, together, each) {
    return choice("How it is shown", [["all", together], ["each", each]], () => (apart().has(name) ? "each" : "all"),
        (value) => {
        const all = apart();
        if (value === "each") all.add(name);
        else all.delete(name);
        look({ each: [...all].join(",") || null });
    });
}

function charts(past) {
    const marks = computed(() => marksOf(past.value));
    const shared = {
        marks: () => marks.value,
        span: () => Number(route.value.query.span ?? 300) * 1000,
        now: () => {
            tick.value;
            return lastTime();
        },
    };
    const ids = computed(() => [...new Set(samples.value.flatMap((one) => one.trackers.map((t) => t.id)))].sort((a,
        b) => a - b));
    const of = (sample, id) => sample.trackers.find((one) => one.id === id);
    const points = (value) => samples.value.map((sample) => [Date.parse(sample.at), value(sample) ?? null]);
    const perTracker = (value) => ids.value.map((id, at) => ({
        name: `Tracker ${id}`, color: `hue-${(at % hues) + 1}`, isDashed: at >= hues,
        points: points((sample) => {
            const one = of(sample, id);
            return one?.isUp ? value(one) : null;
        }),
    }));
    const master = (sample) => sample.trackers.find((one) => one.isMaster);
    return [
        chart({
            ...shared, id: "chart-announces", title: "Announces a second", format: count, axis: short, isWhole: true,
                tools: both("announces", "All", "Each"),
            lines: () => (apart().has("announces") ? perTracker((one) => one.announcesPerSecond) : [{
                name: "All trackers", color: "hue-1",
                points: points((sample) => sample.trackers.reduce((sum, one) => sum + (one.isUp
                    ? one.announcesPerSecond : 0), 0)),
            }]),
        }),
        chart({
            ...shared, id: "chart-commit", title: "Commit time", format: seconds,
                tools: both("commit", "Master", "Each"),
            lines: () => (apart().has("commit") ? perTracker((one) => one.commitSeconds?.p99) : [
                { name: "Median", color: "hue-1", points: points((sample) => master(sample)?.commitSeconds?.median) },
                { name: "99 %", color: "hue-2", points: points((sample) => master(sample)?.commitSeconds?.p99) },
            ]),
        }),
        chart({
            ...shared, id: "chart-swarms", title: "Swarms and peers", format: count, axis: short, isWhole: true,
                tools: both("swarms", "Together", "Each"),
            lines: () => [["Swarms", "swarms", 1], ["Seeders", "seeders", 3],
                ["Leechers", "leechers", 2]].map(([name, key, color], at) => ({
                name, color: `hue-${color}`, pane: apart().has("swarms") ? at : 0,
                    points: points((sample) => sample[key]),
            })),
        }),
    ];
}

/** The right end of the axis: now, or when the last sample was taken, where no more come. */
function lastTime() {
    const last = Date.parse(samples.peek().at(-1)?.at ?? 0);
    const now = trackerNow();
    return now - last < 3000 ? last : now;
}

function marksOf(events) {
    const now = trackerNow();
    const faults = outages(events).map((one) => ({ ...one, kind: "fault", end: one.end ?? now }));
    return [...faults, ...elections(events).map((one) => ({ kind: "election", time: one.time, text: one.text }))];
}

// MARK: What happened last

/** Kinds of which there are as many as trackers, or more, for each thing that happens. */
const isMany = new Set(["commit", "vote", "follow"]);

function latest(past) {
    const some = computed(() => past.value.filter((one) => !isMany.has(one.kind)).slice(-8).reverse());
    return h("section", { "aria-label": "What happened last" },
        h("div.heading", null, h("h2", null, "Latest"), h("a", { href: href(["timeline"]) }, "All on the timeline")),
        list(h("ol.latest", null), () => some.value, (one) => one.number, (one) => {
            const told = one.peek();
            const { glyph, color } = lookOf(told.kind);
            return h("li", null,
                h("time", { datetime: told.at }, exact(told.at).slice(0, 8)),
                h("span.glyph", { "aria-hidden": "true", style: { color: `var(--${color})` } }, glyph),
                h("a", { href: href(["timeline"], { event: told.number }) }, named(told.text)));
        }));
}
