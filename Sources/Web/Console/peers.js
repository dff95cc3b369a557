// A swarm's peers: who they are by their peer id, where, how much they have left, when they were last heard.

import { get, has } from "./api.js";
import { h, named } from "./dom.js";
import { bytes, count, span } from "./format.js";
import { href, look, route } from "./route.js";
import { signal } from "./signals.js";
import { tick, trackerNow } from "./stream.js";
import { fromStart, keepFresh, stateAge } from "./swarms.js";
import { bigTable } from "./table.js";
import { bar, copyButton, figure, nameOf } from "./widgets.js";

const columns = [
    { name: "Client", class: "client" },
    { name: "Address", sort: "address", class: "address" },
    { name: "Left", sort: "left" },
    { name: "Downloaded", sort: "downloaded", first: "desc", class: "number.wide" },
    { name: "Last seen", sort: "seen", first: "desc", class: "seen.wide" },
    { name: "Peer id", class: "id.wide" },
];

export function peersPage(hash) {
    const swarm = signal(null);
    const problem = signal("");
    const query = () => route.value.query;
    const sort = () => ({ by: query().sort ?? "address", order: query().order ?? "asc" });
    const path = `swarms/${encodeURIComponent(hash)}`;
    const learn = async () => {
        try {
            swarm.value = await get(path);
            problem.value = "";
        } catch (refusal) {
            problem.value = refusal.message;
        }
    };
    const table = bigTable({
        label: "Peers of the swarm", columns, noun: "peer", empty: "It has no peers.",
        what: () => JSON.stringify(sort()), after: () => query().after ?? null, moved: (after) => look({ after }),
        sort, sorted: (by, order) => look({ sort: by, order, after: null }),
        key: (one) => `${one.peerID} ${one.address}`,
        load: async (after, limit, cancel) => {
            const { by, order } = sort();
            const answer = await get(`${path}/peers`, { sort: by, order, after, limit }, { cancel });
            return { rows: answer.peers, next: answer.next, total: answer.total };
        },
        row: (one) => [
            h("td.client", null, () => (one.value.client ? named(one.value.client)
                : h("span.muted", null, "not known"))),
            h("td.address", null, () => named(one.value.address),
                h("span.sub.narrow", null, () => named(`${one.value.client ?? "not known"} · ${seen(one.value.lastSeen)}`))),
            h("td", null, () => left(one.value, swarm.value)),
            h("td.number.wide", null, () => bytes(one.value.downloaded)),
            h("td.seen.wide", null, () => seen(one.value.lastSeen)),
            h("td.id.wide", { title: () => one.value.peerID }, h("code", null, () => readable(one.value.peerID))),
        ],
    });
    learn();
    keepFresh(() => {
        learn();
        table.refresh();
    });
    return h("div.filled", null,
        h("p.crumbs", null, h("a", { href: "#/swarms" }, "Swarms"), " / ", h("span.hash", null, hash)),
        h("div.heading", null, h("h1.title", { tabindex: "-1" },
            () => (swarm.value ? nameOf(swarm.value.name) : problem.value || "…")),
            fromStart(table), copyButton(() => hash, "Info hash"),
            h("a.button.quiet", { hidden: () => !has("torrents") || !swarm.value || swarm.value.name === null,
                href: href(["torrents", hash]) }, "Torrent")),
        h("dl.figures.small", { hidden: () => !swarm.value },
            figure("Size", () => bytes(swarm.value?.byteCount)), figure("Seeders", () => count(swarm.value?.seeders)),
            figure("Leechers", () => count(swarm.value?.leechers)),
                figure("Completed", () => count(swarm.value?.completed))),
        h("p.muted", { hidden: () => stateAge(swarm.value?.asOf) === "" }, () => stateAge(swarm.value?.asOf)),
        table.element);
}

/** What a peer has left: a bar of what it has where the size is known, else the bytes alone. */
function left(peer, swarm) {
    if (peer.left === 0) return h("span.left", null, bar(1, "It has all"), h("span", null, "seeds"));
    const whole = swarm?.byteCount;
    if (!whole) return h("span.left", null, bytes(peer.left));
    const share = Math.max(1 - peer.left / whole, 0);
    const text = `${Math.floor(share * 100)} %`;
    return h("span.left", null, bar(share, `It has ${text}, ${bytes(peer.left)} are left`), h("span", null, text));
}

function seen(instant) {
    tick.value;
    const seconds = (trackerNow() - Date.parse(instant)) / 1000;
    return seconds < 2 ? "now" : `${span(seconds)} ago`;
}

/** A peer id as its client chose it: printable characters as they are, others as dots. */
function readable(hex) {
    return (hex.match(/../g) ?? []).map((two) => {
        const code = parseInt(two, 16);
        return code > 0x20 && code < 0x7f ? String.fromCharCode(code) : "·";
    }).join("");
}
