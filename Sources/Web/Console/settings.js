// Settings: cut this tracker off for a while, stop, change and start it, stop the whole cluster; the profile's promises; each
// value with where it comes from.

import { getTagged, has, order, part } from "./api.js";
import { changeCard, keptNote } from "./changes.js";
import { ask, attempt } from "./dialog.js";
import { h, list, named } from "./dom.js";
import { counted, exact, span } from "./format.js";
import { look, route } from "./route.js";
import { computed, signal } from "./signals.js";
import { may, state, tick, trackerNow } from "./stream.js";
import { badge, choice, heading, searchField } from "./widgets.js";

const sources = { console: "accent", flag: "accent", environment: "warn", file: "good", default: "plain" };
const longest = 3600;

export function settingsPage() {
    const told = signal(null);
    const problem = signal("");
    const tag = signal(null);
    const learn = async () => {
        try {
            const answer = await getTagged("settings");
            [told.value, tag.value, problem.value] = [answer.body, answer.tag, ""];
        } catch (refusal) {
            problem.value = refusal.message;
        }
    };
    learn();
    const node = () => state.value.status.node;
    return h("div", null,
        heading("Settings", h("span.muted", null, () => `of tracker ${node().id}`)),
        h("p.problem", { role: "alert" }, () => problem.value),
        h("div.columns", null, cutCard(), h("div.stack", null, profileCard(told), runCard(node))),
        changeCard(told, tag, learn),
        values(told));
}

// MARK: The cut

const cuts = [
    ["bus", "The bus", "It hears no other tracker. It answers nobody; the others go on, and elect another master if it was master."],
    ["peers", "Peers", "Its clients get no answer and ask elsewhere. It goes on following, and voting."],
    ["both", "Both", "It is as good as gone: it hears no other tracker and answers nobody."],
    ["tracker", "One tracker", "It and that one do not hear each other. If one of them is master, the other may suspect it."],
];

function cutCard() {
    const from = signal("bus");
    const other = signal(null);
    const seconds = h("input", { type: "number", name: "seconds", min: "1", max: String(longest), value: "30",
        required: true, inputmode: "numeric" });
    const others = computed(() => state.value.status.cluster.trackers.filter((one) => !one.isThis));
    const faults = () => state.value.faults?.faults ?? [];
    const picker = h("select", { name: "tracker", onchange: (event) => (other.value = Number(event.target.value)) });
    list(picker, () => others.value, (one) => one.id, (one, id) => h("option", { value: String(id) }, `Tracker ${id}`));
    const cut = async (event) => {
        event.preventDefault();
        const body = { from: from.peek(), seconds: Number(seconds.value) };
        if (body.from === "tracker") body.tracker = other.peek() ?? others.peek()[0]?.id;
        await attempt(() => order("POST", "faults", body), `Cut off for ${span(body.seconds)}.`, event.submitter);
    };
    return h("section.card", { id: "cut", hidden: () => !has("faults") },
        h("h2", null, "Cut this tracker off"),
        h("p.muted", null, "To see how the cluster bears it. A cut is this tracker’s own, mends itself when its time is over, "
            + "even if this browser is gone, and is over after a restart."),
        list(h("ul.faults", { "aria-label": "Cuts" }), faults, (one) => one.id, faultRow),
        h("form", { onsubmit: cut, hidden: () => !may("operator") },
            h("fieldset", null, h("legend", null, "From"),
                choice("From", cuts.filter(([id]) => id === "bus" || id === "peers" || id === "both"
                    || others.peek().length > 0)
                    .map(([id, name]) => [id, name]), () => from.value, (value) => (from.value = value)),
                h("label", { hidden: () => from.value !== "tracker" }, h("span", null, "Which"), picker)),
            h("p.expect", { "aria-live": "polite" }, h("b", null, "What to expect: "),
                () => cuts.find(([id]) => id === from.value)[2]),
            h("div.row", null, h("label.inline", null, h("span", null, "for"), seconds, h("span", null, "seconds")),
                h("button.primary", { id: "do-cut" }, "Cut off"),
                h("button.quiet", { type: "button", hidden: () => faults().length === 0,
                    onclick: (event) => attempt(() => order("DELETE", "faults"), "All cuts are mended.",
                        event.target) }, "Mend all"))));
}

/** A cut with its count-down, by the tracker's clock. */
function faultRow(fault) {
    const left = () => {
        tick.value;
        return Math.max((Date.parse(fault.value.until) - trackerNow()) / 1000, 0);
    };
    const whole = () => (Date.parse(fault.value.until) - Date.parse(fault.value.since)) / 1000;
    const from = () => ({ bus: "the bus", peers: "peers" }[fault.value.from] ?? `tracker ${fault.value.tracker}`);
    return h("li", { role: "group" },
        h("div.row", null, h("b.grow", null, () => `Cut off from ${from()}`),
            h("span.countdown", { role: "timer" }, () => `${Math.ceil(left())} s left`),
            h("button.quiet", { type: "button", hidden: () => !may("operator"),
                "aria-label": () => `Mend the cut from ${from()}`,
                onclick: (event) => attempt(() => order("DELETE", `faults/${part(fault.peek().id)}`), "Mended.",
                    event.target) }, "Mend")),
        h("span.bar.bad", { "aria-hidden": "true" },
            h("span", { style: () => ({ width: `${Math.min(left() / whole(), 1) * 100}%` }) })),
        h("p", null, () => named(fault.value.text)),
        h("p.muted", null, () => `since ${exact(fault.value.since).slice(0, 8)}, until ${exact(fault.value.until).slice(0, 8)}`));
}

// MARK: Stop and start

function runCard(node) {
    const isStopped = () => node().role === "stopped";
    const cluster = () => state.value.status.cluster;
    const isLastVoter = () => cluster().trackers.filter((one) => one.role !== "down" && one.hasVote).length <= 1;
    const stop = async (event) => {
        const text = ["It hands its role over, leaves the group in good order and answers nobody. Process, console and swarms stay; Start joins again."];
        if (isLastVoter()) text.push("It is the last one that votes: with it nobody is answered, and swarms that are not kept over a stop are emptied.");
        const isSure = await ask({ title: `Stop tracker ${node().id}?`, text, action: "Stop", isGrave: true,
            typed: isLastVoter() ? state.peek().name : null });
        if (isSure) await attempt(() => order("POST", "node/stop", isLastVoter() ? { name: state.peek().name } : {}),
            "It has stopped.", event.target);
    };
    const stopAll = async (event) => {
        const name = state.peek().name;
        const answer = await ask({
            title: "Stop the whole cluster?", action: "Stop all trackers", isGrave: true, typed: name,
            text: ["Every tracker stops in good order, and nobody is answered any more until they are started again, each on its host.",
                "The swarms are emptied, unless a tracker is told to keep them (keep-swarms). Torrents and users stay."],
        });
        if (answer) await attempt(() => order("POST", "cluster/stop", { name }), "The cluster stops.", event.target);
    };
    return h("section.card", { id: "run", hidden: () => !may("operator") },
        h("h2", null, "Stop and start"),
        h("p", { hidden: () => !has("node") }, () => (isStopped() ? "This tracker is stopped: it answers nobody."
            : `This tracker has run for ${span(state.value.status.uptimeSeconds)}.`)),
        h("div.row", null,
            h("button.grave", { type: "button", id: "stop", hidden: () => !has("node") || isStopped(), onclick: stop },
                "Stop this tracker …"),
            h("button.primary", { type: "button", id: "start", hidden: () => !has("node") || !isStopped(),
                onclick: (event) => attempt(() => order("POST", "node/start", {}), "It joins again.", event.target) },
                    "Start this tracker"),
            h("button.grave", { type: "button", id: "stop-all", hidden: () => !may("admin"), onclick: stopAll },
                "Stop the whole cluster …")),
        h("div", { id: "recording", hidden: () => !has("recording") },
            h("p", null, () => recordedWords(state.value.status.recording)),
            h("button.quiet", { type: "button", id: "copy-recording", hidden: () => !may("admin"),
                onclick: (event) => attempt(() => order("POST", "recording", {}),
                    (copy) => `It is copied to ${copy.file}.`, event.target) },
                "Copy what is recorded")));
}

/** What `tracker replay` could show of this tracker. */
function recordedWords(recording) {
    if (recording?.problem) return `Recorded: ${recording.problem}.`;
    if (recording?.mode !== "ring") return "Nothing is recorded of it.";
    return recording.seconds === undefined ? "Its recording has just begun."
        : `Recorded for tracker replay: the last ${span(recording.seconds)}.`;
}

// MARK: Profile and values

function profileCard(told) {
    const profile = () => told.value?.profile;
    return h("section.card", { hidden: () => !profile() },
        h("h2", null, () => ["Profile ", profile()?.name ?? ""].join("")),
        h("dl.stacked", null, h("dt", null, "It promises"), h("dd", null, () => profile()?.promises ?? ""),
            h("dt", null, "It gives up"), h("dd", null, () => profile()?.givesUp ?? "")));
}

function values(told) {
    const query = () => route.value.query;
    const all = () => told.value?.settings ?? [];
    const some = computed(() => {
        const text = (query().q ?? "").toLowerCase();
        const source = query().source;
        return all().filter((one) => (!source || (source === "set" ? one.source !== "default" : one.source === source))
            && (!text || `${one.key} ${one.value} ${one.flag} ${one.about}`.toLowerCase().includes(text)));
    });
    return h("section", { "aria-label": "Values" },
        h("div.heading", null, h("h2", null, "Values"),
            searchField("Part of a key, a value or a meaning", query().q ?? "", (q) => look({ q })),
            choice("Source", [["", "All"], ["set", "Set"], ["console", "Console"], ["flag", "Flag"], ["environment", "Environment"],
                ["file", "File"], ["default", "Default"]],
                () => query().source ?? "", (value) => look({ source: value }))),
        h("div.table-box", null, h("table.cards.values", { role: "table", "aria-label": "Settings" },
            h("thead", { role: "rowgroup" },
                h("tr", { role: "row" }, ["Key", "Value", "Source", "Meaning"].map((name) =>
                h("th", { role: "columnheader", scope: "col" }, name)))),
            list(h("tbody", { role: "rowgroup" }), () => some.value, (one) => one.key, (one) => h("tr", { role: "row" },
                h("th", { role: "rowheader", scope: "row", "data-label": "Key" }, h("code", null, () => one.value.key)),
                h("td", { role: "cell", "data-label": "Value" },
                    () => (one.value.isSecret ? h("span.muted", null, "secret, not shown")
                    : h("code", null, named(one.value.value))),
                    () => (one.value.kept === undefined ? null : h("p.muted", null, keptNote(one.value)))),
                h("td", { role: "cell", "data-label": "Source" },
                    () => badge(sources[one.value.source] ?? "plain", one.value.source)),
                h("td", { role: "cell", "data-label": "Meaning" }, () => one.value.about, " ",
                    h("code.muted", null, () => one.value.flag ?? "")))))),
        h("p.muted", null, () => (told.value ? `${counted(some.value.length, "setting")} of ${all().length}`
            : "Loading …")));
}
