// Trackers: who is who, how each keeps up, who hears whom; hand over, force an election, give and take votes.

import { order } from "./api.js";
import { appearance, property, ready, whenSized } from "./canvas.js";
import { ask, attempt } from "./dialog.js";
import { h, list, named } from "./dom.js";
import { count, seconds, span } from "./format.js";
import { consoles } from "./moving.js";
import { behind } from "./sentence.js";
import { computed, effect } from "./signals.js";
import { asOf, may, samples, state } from "./stream.js";
import { badge, heading } from "./widgets.js";

const beats = 60;
const matrixMost = 16;
const roles = { master: ["★", "accent"], slave: ["■", "plain"], candidate: ["▲", "warn"], newcomer: ["…", "warn"],
    down: ["✕", "bad"] };

export function trackersPage() {
    const cluster = () => state.value.status.cluster;
    const all = () => cluster().trackers;
    return h("div", null,
        heading("Trackers", h("span.muted", null, asOf)),
        h("div.table-box", null, h("table.cards", { role: "table", "aria-label": "Trackers" },
            h("thead", { role: "rowgroup" }, h("tr", { role: "row" }, columns.map((one) =>
                h(one.class ? `th.${one.class}` : "th",
                    { role: "columnheader", scope: "col", title: one.about ?? null }, one.name)))),
            list(h("tbody", { role: "rowgroup" }), all, (one) => one.id, trackerRow))),
        h("p.muted", null, "Each column tells what tracker ", () => cluster().id,
            " knows: of the others, what they last said over the bus."),
        orders(cluster),
        h("div.stack", null, hearing(all), h("div.columns", null, members(cluster), bus(cluster))));
}

// MARK: The table

const columns = [
    { name: "Tracker", cell: who },
    { name: "Last 60 s", cell: strip,
        about: "A bar for each second: whether a keepalive came in time. The newest is at the right." },
    { name: "Silent", class: "number",
        cell: (one) => (one.value.isThis ? "this one" : seconds(one.value.silentSeconds)),
        about: "Since its last message" },
    { name: "Epoch", class: "number", cell: (one) => `${one.value.epoch.round}.${one.value.epoch.id}` },
    { name: "Commit index", class: "number", cell: (one) => count(one.value.commitIndex) },
    { name: "Lag", class: "number", cell: lag,
        about: "Entries that it was behind this tracker when it last said where it is" },
    { name: "State", cell: agreement, about: "Whether it holds the same state, by the digest of its history" },
    { name: "Round trip", class: "number", cell: (one) => seconds(one.value.report?.roundTripSeconds?.median),
        about: "From it to another tracker and back, median" },
    { name: "Commit, 99\u00a0%", class: "number", cell: (one) => seconds(one.value.report?.commitSeconds?.p99) },
    { name: "Announces/s", class: "number",
        cell: (one) => count(one.value.role === "down" ? NaN : one.value.report?.announcesPerSecond) },
    { name: "Clock", class: "number", cell: clock, about: "By how much its clock is ahead of this tracker’s" },
    { name: "", cell: actions },
];

function trackerRow(one) {
    return h("tr", { role: "row", "data-tracker": one.peek().id,
        class: () => ({ gone: one.value.role === "down", mine: one.value.isThis }) },
        columns.map((column) => h(column.class ? `td.${column.class}` : "td",
            { role: "cell", "data-label": column.name }, column.cell === who || column.cell === strip
            || column.cell === actions
            ? column.cell(one) : () => column.cell(one))));
}

function who(one) {
    return h("div.who", null,
        h("b", null, () => `${one.value.id}`),
        h("span", null, () => {
            const role = one.value.role;
            const [glyph, tone] = roles[role] ?? ["?", "plain"];
            return badge(tone, `${glyph} ${role}`, role === "down" ? "It has not been heard for too long." : null);
        }),
        h("span", null, () => (one.value.hasVote ? null
            : badge("plain", "no vote", "Its vote is not needed, and not counted."))),
        h("span.sub", null, () => [
            one.value.report ? named(one.value.report.host) : h("span.muted", null, "has told nothing yet"),
            one.value.report?.clients ? h("span.muted", { title: one.value.report.clients },
                named(one.value.report.clients)) : null,
        ]),
        h("span.problem", null, () => (one.value.report?.problem ? named(one.value.report.problem) : null)));
}

function lag(one) {
    const { lag: entries, role, isWhole } = one.value;
    if (role === "down") return "–";
    if (!isWhole) return "fetches the state";
    return entries > behind ? h("b.bad-text", null, count(entries)) : count(entries);
}

function agreement(one) {
    if (one.value.isThis) return h("span.digest",
        { title: `The digest of this tracker’s history: ${state.value.status.cluster.digest}` },
        `${state.value.status.cluster.digest.slice(0, 8)}…`);
    return {
        same: badge("good", "✓ in sync", "The same history, or the beginning of it"),
        ahead: badge("plain", "ahead", "Its history is longer: only time can tell"),
        different: badge("bad", "✕ another history"),
    }[one.value.agreement] ?? badge("plain", "not known", "Its history ends so far back that nobody can tell any more");
}

function clock(one) {
    const by = one.value.report?.clockDifferenceSeconds;
    if (one.value.isThis || by === undefined) return "–";
    return Math.abs(by) < 0.0005 ? "0" : `${by > 0 ? "+" : "−"}${seconds(Math.abs(by))}`;
}

/** The last keepalives, a bar a second: tall where one came in time, short where it was late, a dot where none came. */
function strip(one) {
    const mine = computed(() => samples.value.slice(-beats).map((sample) => sample.trackers.find((t) => t.id === one.value.id)));
    const inTime = () => mine.value.filter((beat) => beat?.isUp && beat.silentSeconds <= 1.2).length;
    const canvas = h("canvas.strip", { role: "img", "aria-label": () => (one.value.isThis
        ? "This tracker itself" : `${inTime()} of the last ${mine.value.length} keepalives came in time`) });
    const draw = () => {
        const room = ready(canvas);
        if (!room) return;
        const { pen, width, height } = room;
        const wide = width / beats;
        mine.peek().forEach((beat, at) => {
            const x = width - (mine.peek().length - at) * wide;
            const isNone = !beat || !beat.isUp;
            const isLate = !isNone && beat.silentSeconds > 1.2;
            const tall = isNone ? 2 : isLate ? height * 0.45 : height - 2;
            pen.fillStyle = property(isNone ? "bad" : isLate ? "warn" : beat.isMaster ? "accent" : "good");
            pen.globalAlpha = 0.45 + (0.55 * at) / beats;
            pen.fillRect(x, height - tall, Math.max(wide - 1, 1), tall);
        });
    };
    effect(() => {
        mine.value;
        appearance.value;
        draw();
    });
    whenSized(canvas, draw);
    return h("span.strip-box", null, canvas, h("span.pulse", { "aria-hidden": "true", class: () => {
        const last = mine.value.at(-1);
        return { on: samples.value.length % 2 && last?.isUp, off: !last?.isUp };
    } }));
}

function actions(one) {
    const id = one.peek().id;
    return h("div.row", { hidden: () => !may("operator") || state.value.status.cluster.mode === "alone" },
        h("button.quiet", {
            type: "button", disabled: () => one.value.role !== "slave" || !one.value.isWhole,
            onclick: (event) => handOver(id, event.target), "aria-label": `Make tracker ${id} master`,
        }, "Make master"));
}

async function handOver(id, button) {
    const isSure = await ask({
        title: `Make tracker ${id} master?`, action: "Hand over",
        text: `The present master finishes what is under way, then tracker ${id} takes the role. Announces wait for some milliseconds; none is lost. `
            + "If the election policy prefers another tracker, it may take the role again.",
    });
    if (isSure) await attempt(() => order("POST", "cluster/handover", { to: id }), `Tracker ${id} is master.`, button);
}

// MARK: Orders

function orders(cluster) {
    return h("div.toolbar", { hidden: () => !may("operator") || cluster().mode === "alone" },
        h("button", { type: "button", id: "election", onclick: async (event) => {
            const isSure = await ask({
                title: "Force an election?", action: "Hold an election",
                text: "The trackers elect a master anew. Until it is there, a few round trips, announces wait. "
                    + "It is of use where a master is up but does its work badly.",
            });
            if (isSure) await attempt(() => order("POST", "cluster/election", {}), "An election has been asked for.",
                event.target);
        } }, "Force an election …"));
}

function members(cluster) {
    return h("section.card", { hidden: () => cluster().mode !== "quorum" },
        h("h2", null, "Who votes"),
        h("p", null, () => `${cluster().voters.length} have a vote; ${Math.floor(cluster().voters.length / 2) + 1} of them decide.`),
        list(h("ul.plain", null), () => cluster().trackers, (one) => one.id, (one, id) =>
            h("li.row", null, h("span.grow", null, `Tracker ${id}`, " ",
                h("span.muted", null, () => (one.value.hasVote ? "votes" : "has no vote"))),
                h("button.quiet", {
                    type: "button", hidden: () => !may("operator"),
                    "aria-label": () => (one.value.hasVote ? `Take the vote of tracker ${id}`
                        : `Give tracker ${id} a vote`),
                    onclick: (event) => vote(id, one.peek().hasVote, event.target),
                }, () => (one.value.hasVote ? "Take its vote …" : "Give it a vote …")))));
}

async function vote(id, isTaken, button) {
    const isSure = await ask({
        title: isTaken ? `Take the vote of tracker ${id}?` : `Give tracker ${id} a vote?`,
        action: isTaken ? "Take its vote" : "Give it a vote", isGrave: isTaken,
        text: isTaken
            ? "With fewer voters fewer may fail. The tracker goes on following and answering."
            : "It has to hold the full state first. With more voters more may fail, and more have to agree.",
    });
    if (!isSure) return;
    await attempt(() => order("POST", "cluster/members", isTaken ? { remove: id } : { add: id }),
        (told) => `Now voting: ${(told?.members ?? []).join(", ")}.`, button);
}

// MARK: Who hears whom

/** Seconds after which what a tracker reports, once a second or so, is too old to tell how it is now. */
const old = 3;

/**
 * Who hears whom, a row for each tracker that listens and a column for each that speaks: a link may be broken in one
 * direction alone. Its own row a tracker knows; the others are as of their last reports.
 */
function hearing(all) {
    const faults = () => state.value.faults?.faults ?? [];
    const isCut = (id) => faults().some((one) => one.from === "bus" || (one.from === "tracker" && one.tracker === id));
    const isHeard = (speaker) => all().some((one) => ["", "late"].includes(link(one, speaker, isCut).tone));
    // Whom nobody hears is down, and the table says so.
    const deaf = computed(() => all().filter(isHeard).flatMap((speaker) => all()
        .filter((listener) => link(listener, speaker, isCut).tone === "silent")
        .map((listener) => [listener.id, speaker.id])));
    return h("section.card", { hidden: () => all().length < 2 || all().length > matrixMost },
        h("h2", null, "Who hears whom"),
        h("div.table-box", null, h("table.matrix", { "aria-label": "Who hears whom" },
            h("thead", null, list(h("tr", null, h("td", null, "")), all, (one) => one.id,
                (one, id) => h("th", { scope: "col" }, `hears ${id}`))),
            list(h("tbody", null), all, (one) => one.id, (listener) => list(h("tr", { "data-listener": listener.peek().id },
                h("th", { scope: "row" }, `tracker ${listener.peek().id}`, h("span.sub", null, () => told(listener.value)))),
                all, (one) => one.id, (speaker) => {
                    const now = computed(() => link(listener.value, speaker.value, isCut));
                    return h("td", { "data-speaker": speaker.peek().id, class: () => Object.fromEntries(
                        ["silent", "late", "cut", "unknown", "self"].map((one) => [one, now.value.tone === one])) },
                        h("b", null, () => now.value.text), h("span.sub", null, () => now.value.sub));
                })))),
        list(h("ul.plain.deaf", null), () => deaf.value, (pair) => pair.join("-"), (pair) => {
            const [listener, speaker] = pair.peek();
            return h("li.bad-text", null, `✕ Tracker ${listener} does not hear tracker ${speaker}.`);
        }),
        h("p.muted", null, "Each cell tells how long ago the one that listens heard the one that speaks. Trackers tell each "
            + "other about once a second; beside each stands how old its word is. Their own consoles: ",
            list(h("span.links", null), () => consoles.value.filter((one) => !one.isThis && one.origin),
                (one) => one.id,
                (one, id) => h("a", { href: () => `${one.value.origin}/#/trackers` }, `tracker ${id}`))));
}

/** How old the words of a tracker on whom it hears are. */
function told(one) {
    if (one.isThis) return "now";
    return one.report ? `${seconds(one.report.ageSeconds)} ago` : "has told nothing yet";
}

/** What is known of one tracker's words to another: `tone` is silent, late, cut, unknown, self, or empty where all is well. */
function link(listener, speaker, isCut) {
    if (listener.id === speaker.id) return { tone: "self", text: "–", sub: "" };
    if (listener.isThis) {
        if (isCut(speaker.id)) return { tone: "cut", text: "cut", sub: speaker.role === "down" ? "not heard" : "heard" };
        return heard(speaker.silentSeconds, speaker.role !== "down", 1.5, seconds);
    }
    if (!listener.report) return { tone: "unknown", text: "?", sub: "not known" };
    const found = listener.report.hears.find((one) => one.id === speaker.id);
    if (listener.role === "down" || listener.report.ageSeconds > old) {
        return { tone: "unknown", text: "?", sub: found?.isUp ? "was heard" : "was not heard" };
    }
    // A tracker that another has never heard is not in its list.
    if (!found) return { tone: "silent", text: "never", sub: "not heard" };
    return heard(found.silentSeconds, found.isUp, 2, (whole) => `≤ ${span(whole)}`);
}

function heard(silence, isUp, most, words) {
    if (!isUp) return { tone: "silent", text: words(silence), sub: "not heard" };
    const isLate = silence > most;
    return { tone: isLate ? "late" : "", text: words(silence), sub: isLate ? "late" : "heard" };
}

function bus(cluster) {
    const of = () => cluster().bus;
    const rows = [
        ["Endpoint", () => named(of()?.endpoint ?? "–")],
            ["State", () => (of()?.isConnected ? badge("good", "✓ connected") : badge("bad", "✕ lost"))],
        ["Broker", () => (of()?.broker ? named(of().broker) : null)],
            ["Last problem", () => (of()?.lastProblem ? named(of().lastProblem) : null)],
        ["Sent, received", () => `${count(of()?.sent)}, ${count(of()?.received)}`],
            ["Refused", () => count(of()?.rejected)],
        ["Asked for again", () => count(of()?.repaired)], ["Given up for want of room", () => count(of()?.dropped)],
    ];
    return h("section.card", { hidden: () => !of() }, h("h2", null, "The bus"),
        h("dl.pairs", null, rows.map(([name, value]) => h("div", { hidden: () => value() === null },
            h("dt", null, name), h("dd", null, value)))));
}
