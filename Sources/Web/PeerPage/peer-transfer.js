// One transfer: what it does in a sentence, how far and how fast it is, its pieces, and below them one of its parts.

import { byteStep } from "/console/canvas.js";
import { chart } from "/console/charts.js";
import { h, named } from "/console/dom.js";
import { bytes, count, day, nothing, since, span } from "/console/format.js";
import { go, look, route } from "/console/route.js";
import { computed } from "/console/signals.js";
import { copyButton, figure, icon, nameOf } from "/console/widgets.js";
import { act, addPeer, pathOf, placeOf, remove, torrentLink } from "./peer-actions.js";
import { filesPart } from "./peer-files.js";
import { limitsPart } from "./peer-limits.js";
import { peersPart, trackersPart, webSeedsPart } from "./peer-others.js";
import { piecesView } from "./peer-pieces.js";
import { detail, peerNow, rateCount, ratesOf, tick, transfers, watch } from "./peer-stream.js";
import { progressBar } from "./peer-transfers.js";
import { far, percent, rate, ratio, runs, sentence, words } from "./peer-words.js";

export function transferPage(hash) {
    watch(hash);
    const one = computed(() => {
        const brief = transfers.value.get(hash);
        return brief ? { ...(detail.value?.hash === hash ? detail.value : {}), ...brief } : null;
    });
    const isThere = () => one.value !== null;
    return h("div.transfer", null,
        h("p.crumbs", null, h("a", { href: "#/transfers" }, "Transfers"), " / ", h("span.hash", null, hash)),
        h("h1.title", { tabindex: "-1" }, () => (one.value ? nameOf(one.value.name) : "There is no such transfer")),
        h("p", { hidden: isThere }, "It has been removed, or its address is not right. ",
            h("a", { href: "#/transfers" }, "All transfers")),
        h("div.contents", { hidden: () => !isThere() },
            toolbar(hash, one),
            h("section.card.progress-card", null,
                h("div.state-line", null, h("span", { class: () => ({ dot: true }), "data-tone": () => tone(one.value) }),
                    // Only another state is said by itself: rates change every second.
                    h("p.state-text", null, () => (one.value ? named(sentence(one.value), 600) : "")),
                    h("span.unseen", { role: "status" }, () => (one.value ? words(one.value).badge : ""))),
                h("div.big-bar", null, () => (one.value ? progressBar(one.value) : null)),
                h("p.muted.row.far", null, h("b", null, () => percent(one.value?.progress)),
                    h("span", null, () => (one.value ? far(one.value) : "")),
                    h("span", null, () => (one.value ? h("span", null, "in ", named(placeOf(one.value))) : null)),
                    h("span", { hidden: () => !one.value?.isPrivate }, "private: peers come from its trackers only")),
                h("p.muted.answered", { hidden: () => !one.value?.tracker }, "The tracker that answered last: ",
                    () => named(one.value?.tracker ?? "", 200), h("span", { hidden: () => !one.value?.trackerAddress },
                        " at ", () => named(one.value?.trackerAddress ?? "")))),
            parts(hash, one)));
}

const tone = (one) => (one ? words(one).tone : "plain");

function toolbar(hash, one) {
    const order = (name, text) => h("button", { type: "button", onclick: (event) => act(name, [hash], event.target) }, text);
    return h("div.toolbar", null,
        h("button.primary.with-icon", { type: "button", id: "run",
            onclick: (event) => act(runs(one.peek()) ? "pause" : "resume", [hash], event.currentTarget) },
            () => (one.value && runs(one.value) ? icon("pause") : icon("resume")),
            h("span", null, () => (one.value && runs(one.value) ? "Pause" : "Resume"))),
        order("recheck", "Recheck"), order("announce", "Ask trackers"),
        h("button", { type: "button", onclick: () => addPeer(hash) }, "Add a peer …"),
        h("span.contents", { hidden: () => !one.value?.magnet }, copyButton(() => one.peek()?.magnet ?? "", "Magnet link")),
        h("span.contents", { hidden: () => !one.value || one.value.state === "metadata" || one.value.byteCount === null },
            torrentLink(`${pathOf(hash)}/file`, () => one.value?.name, "a.button.quiet")),
        h("button.grave", { type: "button", id: "remove",
            onclick: async () => (await remove([hash])) && go(["transfers"]) }, "Remove …"));
}

function figures(one) {
    const of = (read) => () => (one.value ? read(one.value) : nothing);
    const swarm = (n) => (Number.isFinite(n) ? count(n) : "not told");
    return h("dl.figures.small.transfer-figures", null,
        figure("Down", of((t) => rate(t.downRate))), figure("Up", of((t) => rate(t.upRate))),
        figure("Time left", of((t) => (Number.isFinite(t.secondsLeft) ? span(t.secondsLeft) : nothing))),
        figure("Peers", of((t) => `${count(t.peers)} of ${count(Math.max(t.knownPeers, t.peers))}`),
            "Those that we are connected to, of those that we know"),
        figure("Seeders, leechers", of((t) => (Number.isFinite(t.seeders) ? `${swarm(t.seeders)}, ${swarm(t.leechers)}`
            : "not told")), "As its trackers say"),
        figure("Received", of((t) => bytes(t.received))), figure("Sent", of((t) => bytes(t.sent))),
        figure("Ratio", of((t) => ratio(t.ratio)), "Sent, of what has been received"),
        figure("Wasted", of((t) => bytes(t.wasted)), "Received in vain: twice, or not what it should have been"),
        figure("Size", of((t) => bytes(t.byteCount))),
        figure("Added", of((t) => since(t.addedAt)), one.peek() ? day(one.peek().addedAt) : null),
        figure("Complete", of((t) => (t.completedAt ? since(t.completedAt) : "not yet"))));
}

function rates(hash) {
    const line = (name, color, at) => ({ name, color, points: ratesOf(hash).map((one) => [one[0], one[at]]) });
    return chart({
        id: "chart-rates", title: "Rates", note: "five minutes, while this page is open", format: rate,
        step: byteStep,
        lines: () => {
            rateCount.value;
            return [line("Down", "accent", 1), line("Up", "hue-2", 2)];
        },
        marks: () => [], now: () => {
            tick.value;
            return peerNow();
        }, span: () => {
            rateCount.value;
            // As much as there is, so that the first minute is not a dash at the edge.
            return Math.min(Math.max(peerNow() - (ratesOf(hash)[0]?.[0] ?? peerNow()), 60_000), 300_000);
        },
    });
}

// MARK: Parts

function parts(hash, one) {
    const all = [
        ["overview", "Overview", () => null, () => h("div.part", null, figures(one),
            h("div.columns", null, rates(hash), piecesView(one)))],
        ["files", "Files", () => one.value?.fileCount, () => filesPart(hash, one)],
        ["peers", "Peers", () => one.value?.peers, () => peersPart(one)],
        ["trackers", "Trackers", () => one.value?.trackers?.length, () => trackersPart(one)],
        ["seeds", "Web seeds", () => one.value?.webSeeds?.length, () => webSeedsPart(one)],
        ["limits", "Limits", () => null, () => limitsPart(hash, one)],
    ];
    const open = computed(() => (all.find(([name]) => name === route.value.query.show) ?? all[0])[0]);
    const isTold = computed(() => detail.value?.hash === hash);
    return h("section.parts", { "aria-label": "Parts" },
        h("div.choice.tabs", { role: "group", "aria-label": "Show" }, all.map(([name, title, number]) =>
            h("button", { type: "button", "aria-pressed": () => String(open.value === name), "data-part": name,
                onclick: () => look({ show: name }) }, title,
                h("span.count", null, () => (Number.isFinite(number()) ? ` ${count(number())}` : ""))))),
        () => (isTold.value ? all.find(([name]) => name === open.value)[3]() : h("p.muted", null, "Loading …")));
}
