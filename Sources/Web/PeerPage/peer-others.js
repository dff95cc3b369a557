// Those whom a transfer deals with: peers, trackers and web seeds, each with what it gives and what went wrong.

import { h, list, named } from "/console/dom.js";
import { bytes, count, counted, nothing, span } from "/console/format.js";
import { look, route } from "/console/route.js";
import { computed } from "/console/signals.js";
import { badge, bar } from "/console/widgets.js";
import { peerNow, tick } from "./peer-stream.js";
import { dealings, percent, rateIfAny } from "./peer-words.js";

// MARK: Peers

const sums = (peer) => (peer.downRate ?? 0) + (peer.upRate ?? 0);
const orders = [["rate", "Fastest first"], ["address", "By address"]];

export function peersPart(one) {
    const by = () => route.value.query.by ?? "rate";
    const all = computed(() => {
        const peers = [...(one.value?.peerList ?? [])];
        if (by() === "rate") return peers.sort((a, b) => sums(b) - sums(a) || (a.address < b.address ? -1 : 1));
        return peers.sort((a, b) => (a.address < b.address ? -1 : 1));
    });
    return h("div.part", null,
        h("div.toolbar", { hidden: () => all.value.length < 2 }, h("div.choice", { role: "group", "aria-label": "Order" },
            orders.map(([value, title]) => h("button", { type: "button", "aria-pressed": () => String(by() === value),
                onclick: () => look({ by: value === "rate" ? null : value }) }, title)))),
        h("p.muted", { hidden: () => all.value.length > 0 }, () => noPeer(one.value)),
        h("div.table-box", { hidden: () => all.value.length === 0 }, h("table.cards.peers", { "aria-label": "Peers" },
            head("Peer", "What goes on", "It has", "Down.number", "Up.number", "Received.number", "Sent.number"),
            list(h("tbody", null), () => all.value, (peer) => peer.address, peerRow))),
        h("p.muted", { hidden: () => (one.value?.peers ?? 0) <= all.value.length },
            () => `The first ${count(all.value.length)} of ${counted(one.value?.peers, "peer")} are shown.`));
}

const noPeer = (one) => (one?.knownPeers > 0
    ? `It is connected to no peer now, and knows ${counted(one.knownPeers, "peer")} that it asks again.`
    : "It knows no peer so far. Trackers tell some, and you can add one by its address.");

const head = (...names) => h("thead", null, h("tr", null, names.map((text) => {
    const [name, kind] = text.split(".");
    return h(kind ? `th.${kind}` : "th", { scope: "col" }, name);
})));

function peerRow(peer) {
    return h("tr", null,
        h("td.who", null, h("b.address", null, () => named(peer.value.address)),
            h("span.sub", null, () => named(peer.value.client || "a client that is not known", 80),
                () => (peer.value.flags?.incoming ? ", came to us" : ""))),
        h("td", { "data-label": "What goes on" }, () => dealings(peer.value)),
        h("td", { "data-label": "It has" }, h("span.left", null, () => bar(peer.value.progress ?? 0,
            `It has ${percent(peer.value.progress ?? 0)}`), h("span", null, () => percent(peer.value.progress ?? 0)))),
        h("td.number", { "data-label": "Down" }, () => rateIfAny(peer.value.downRate)),
        h("td.number", { "data-label": "Up" }, () => rateIfAny(peer.value.upRate)),
        h("td.number", { "data-label": "Received" }, () => (peer.value.received ? bytes(peer.value.received) : "")),
        h("td.number", { "data-label": "Sent" }, () => (peer.value.sent ? bytes(peer.value.sent) : "")));
}

// MARK: Trackers

export function trackersPart(one) {
    const all = computed(() => (one.value?.trackers ?? []).map((tracker, at) => ({ ...tracker, at })));
    return h("div.part", null,
        h("p.muted", { hidden: () => all.value.length > 0 }, "It has no trackers: peers come from other peers, from this "
            + "network, or from you."),
        h("div.table-box", { hidden: () => all.value.length === 0 }, h("table.cards.trackers", { "aria-label": "Trackers" },
            head("Tracker", "Tier.number", "How it answers", "Seeders.number", "Leechers.number"),
            list(h("tbody", null), () => all.value, (tracker) => `${tracker.at} ${tracker.url}`,
                (tracker) => trackerRow(tracker, one)))),
        h("p.muted", { hidden: () => all.value.length < 2 }, "Tiers are asked one after the other: the next only where "
            + "none of those before it answers."));
}

function trackerRow(tracker, one) {
    const isLast = () => one.value?.tracker === tracker.value.url;
    return h("tr", null,
        h("td.name", null, h("span.url", null, () => named(tracker.value.url, 300)),
            h("span.sub", { hidden: () => !tracker.value.address }, "at ", () => named(tracker.value.address ?? ""))),
        h("td.number", { "data-label": "Tier" }, () => count((tracker.value.tier ?? 0) + 1)),
        h("td.answer", { "data-label": "How it answers" }, h("span", null, () => answer(tracker.value, isLast()))),
        h("td.number", { "data-label": "Seeders" }, () => (tracker.value.seeders === null ? nothing : count(tracker.value.seeders))),
        h("td.number", { "data-label": "Leechers" },
            () => (tracker.value.leechers === null ? nothing : count(tracker.value.leechers))));
}

/** What went wrong comes first; that it answered before is told beside it. */
function answer(tracker, isLast) {
    tick.value;
    const ago = tracker.answeredAt ? `${span(Math.max(peerNow() - tracker.answeredAt, 0) / 1000)} ago` : null;
    if (tracker.problem) {
        return [badge("bad", "No answer"), h("span", null, " ", named(tracker.problem, 300), ago ? `; it answered ${ago}` : "")];
    }
    if (ago) return [badge("good", isLast ? "Answered last" : "Answered"), h("span", null, ` ${ago}`)];
    return [badge("plain", "Not asked yet")];
}

// MARK: Web seeds

export function webSeedsPart(one) {
    const all = computed(() => (one.value?.webSeeds ?? []).map((seed, at) => ({ ...seed, at })));
    return h("div.part", null,
        h("p.muted", { hidden: () => all.value.length > 0 }, "The torrent names no web server that has its files."),
        h("div.table-box", { hidden: () => all.value.length === 0 }, h("table.cards.seeds", { "aria-label": "Web seeds" },
            head("Web seed", "Received.number", "How it answers"),
            list(h("tbody", null), () => all.value, (seed) => `${seed.at} ${seed.url}`, (seed) => h("tr", null,
                h("td.name", null, () => named(seed.value.url, 300)),
                h("td.number", { "data-label": "Received" }, () => bytes(seed.value.received)),
                h("td.answer", { "data-label": "How it answers" }, h("span", null, () => (seed.value.problem
                    ? [badge("bad", "No answer"), h("span", null, " ", named(seed.value.problem, 300))]
                    : [badge(seed.value.received ? "good" : "plain", seed.value.received ? "Gives" : "Not asked yet")]))))))));
}
