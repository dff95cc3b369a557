// Swarms: all that anybody has announced, searched, sorted and paged by the tracker.

import { get } from "./api.js";
import { h } from "./dom.js";
import { bytes, count, span } from "./format.js";
import { href, look, route } from "./route.js";
import { effect, signal } from "./signals.js";
import { isLive, state, trackerNow } from "./stream.js";
import { bigTable } from "./table.js";
import { heading, nameOf, searchField } from "./widgets.js";

const columns = [
    { name: "Name", sort: "name" },
    { name: "Info hash", sort: "hash", class: "hash.wide" },
    { name: "Size", sort: "size", first: "desc", class: "number.wide" },
    { name: "Seeders", sort: "seeders", first: "desc", class: "number" },
    { name: "Leechers", sort: "leechers", first: "desc", class: "number" },
    { name: "Completed", sort: "completed", first: "desc", class: "number.wide" },
];

const refreshEvery = 2;

/** Has a list ask anew for what is seen, with every second state that comes. */
export function keepFresh(refresh) {
    let told = 0;
    effect(() => {
        if (state.value && isLive.peek() && (told += 1) % refreshEvery === 0) refresh();
    });
}

export function swarmsPage() {
    const query = () => route.value.query;
    const sort = () => ({ by: query().sort ?? "hash", order: query().order ?? "asc" });
    const told = signal(null);
    const table = bigTable({
        label: "Swarms", columns, noun: "swarm", empty: "No swarm is like that.",
        what: () => JSON.stringify([query().q ?? "", sort()]), after: () => query().after ?? null,
        moved: (after) => look({ after }),
        sort, sorted: (by, order) => look({ sort: by, order, after: null }),
        key: (one) => one.infoHash,
        load: async (after, limit, cancel) => {
            const { by, order } = sort();
            const answer = await get("swarms", { q: query().q, sort: by, order, after, limit }, { cancel });
            told.value = answer.asOf;
            return { rows: answer.swarms, next: answer.next, total: answer.total };
        },
        row: (one) => [
            h("td.name", null,
                h("a", { href: () => href(["swarms", one.value.infoHash]) }, () => nameOf(one.value.name)),
                h("span.sub.narrow", null, () => `${one.value.infoHash.slice(0, 12)}… · ${bytes(one.value.byteCount)}`)),
            h("td.hash.wide", null, () => one.value.infoHash),
            h("td.number.wide", null, () => bytes(one.value.byteCount)),
            h("td.number", null, () => count(one.value.seeders)),
            h("td.number", null, () => count(one.value.leechers)),
            h("td.number.wide", null, () => count(one.value.completed)),
        ],
    });
    keepFresh(table.refresh);
    return h("div.filled", null,
        heading("Swarms",
            searchField("Beginning of a hash, or part of a name", query().q ?? "", (q) => look({ q, after: null })),
            fromStart(table),
            h("span.muted", null, () => stateAge(told.value))),
        table.element);
}

/** Back to the first row, where the list began later. */
export const fromStart = (table) => h("button.quiet", {
    type: "button", hidden: () => table.view.value.isFromStart, onclick: () => look({ after: null }),
}, "From the start");

/** How old the applied state is of which a list is made. */
export function stateAge(asOf) {
    if (!asOf) return "";
    const seconds = (trackerNow() - Date.parse(asOf)) / 1000;
    return seconds > 5 ? `as of ${span(seconds)} ago` : "";
}
