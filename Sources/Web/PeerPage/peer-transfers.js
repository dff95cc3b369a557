// Transfers: all of them with what each does, how far it is and how fast; filtered, searched and sorted here, since the
// stream tells all. One or many are paused, resumed, rechecked, announced and removed.

import { h, named } from "/console/dom.js";
import { bytes, count, counted, span } from "/console/format.js";
import { href, look, route } from "/console/route.js";
import { computed, effect, signal } from "/console/signals.js";
import { bigTable } from "/console/table.js";
import { badge, choice, icon, nameOf, searchField } from "/console/widgets.js";
import { act, remove } from "./peer-actions.js";
import { openAdd } from "./peer-add.js";
import { totals, transfers } from "./peer-stream.js";
import { far, kindOf, kinds, percent, rate, rateIfAny, ratio, runs, words } from "./peer-words.js";

const collator = new Intl.Collator("en", { numeric: true, sensitivity: "base" });
const last = (value) => (Number.isFinite(value) ? value : Infinity);
const kindPlace = new Map(kinds.map(([kind], at) => [kind, at]));

/** What it is sorted by: the word in the address, its name, the order it is first sorted in, what is compared. */
const sorts = [
    ["added", "Added", "desc", (one) => one.addedAt ?? 0],
    ["name", "Name", "asc", null],
    ["state", "State", "asc", (one) => kindPlace.get(kindOf(one))],
    ["done", "Done", "desc", (one) => one.progress ?? 0],
    ["down", "Down", "desc", (one) => one.downRate ?? 0],
    ["up", "Up", "desc", (one) => one.upRate ?? 0],
    ["left", "Time left", "asc", (one) => last(one.secondsLeft)],
    ["peers", "Peers", "desc", (one) => one.peers ?? 0],
    ["ratio", "Ratio", "desc", (one) => one.ratio ?? -1],
    ["size", "Size", "desc", (one) => one.byteCount ?? -1],
];

const sortOf = (name) => sorts.find(([one]) => one === name) ?? sorts[0];

export function transfersPage() {
    const query = () => route.value.query;
    const chosen = signal(new Set());
    const all = computed(() => [...(transfers.value?.values() ?? [])]);
    const sort = () => {
        const [by, , first] = sortOf(query().sort);
        return { by, order: query().order === "asc" || query().order === "desc" ? query().order : first };
    };
    const shown = computed(() => arranged(all.value, query(), sort()));
    effect(() => {
        // What is gone is chosen no longer.
        const there = transfers.value;
        const kept = [...chosen.peek()].filter((hash) => there.has(hash));
        if (kept.length !== chosen.peek().size) chosen.value = new Set(kept);
    });
    const table = listing(shown, chosen, sort);
    effect(() => {
        shown.value;
        table.refresh();
    });
    const isEmpty = () => transfers.value.size === 0;
    return h("div.filled.transfers", null,
        h("div.heading", null, h("h1", { tabindex: "-1" }, "Transfers"),
            h("span.contents", { hidden: isEmpty },
                searchField("Name, or beginning of a hash", query().q ?? "", (q) => look({ q }))),
            h("span.moving.narrow", null, () => `↓ ${rate(totals.value?.downRate ?? 0)}`, h("span.muted", null, " · "),
                () => `↑ ${rate(totals.value?.upRate ?? 0)}`),
            h("button.primary.add", { type: "button", id: "add", onclick: () => openAdd() }, icon("create"), "Add")),
        h("div.toolbar.filters-box", { hidden: isEmpty },
            h("div.contents", { hidden: () => chosen.value.size > 0 }, filters(all), sorting(sort)),
            actions(shown, chosen)),
        emptyPage(isEmpty),
        h("div.contents", { hidden: isEmpty }, table.element));
}

/** Those that are wanted, in the order that is wanted. */
function arranged(all, { q, state }, { by, order }) {
    const text = (q ?? "").toLowerCase();
    const some = all.filter((one) => (!state || kindOf(one) === state)
        && (!text || String(one.name ?? "").toLowerCase().includes(text) || one.hash.startsWith(text)));
    const value = sortOf(by)[3];
    const sign = order === "desc" ? -1 : 1;
    const byName = (a, b) => collator.compare(a.name ?? "", b.name ?? "") || (a.hash < b.hash ? -1 : 1);
    if (!value) return some.sort((a, b) => sign * byName(a, b));
    // What has no value, such as a time left, is last in either order.
    return some.map((one) => [value(one), one]).sort(([a, one], [b, other]) => {
        if (a === b) return byName(one, other);
        if (a === Infinity || b === Infinity) return a === Infinity ? 1 : -1;
        return sign * (a - b);
    }).map(([, one]) => one);
}

// MARK: Above the list

function filters(all) {
    const counts = computed(() => {
        const found = new Map();
        for (const one of all.value) found.set(kindOf(one), (found.get(kindOf(one)) ?? 0) + 1);
        return found;
    });
    const state = () => route.value.query.state ?? "";
    const option = (value, text, number) => h("button", {
        type: "button", "aria-pressed": () => String(state() === value), onclick: () => look({ state: value }),
        hidden: () => value !== "" && number() === 0 && state() !== value,
    }, text, " ", h("span.count", null, () => count(number())));
    const number = (kind) => () => (kind ? counts.value.get(kind) ?? 0 : all.value.length);
    const choices = [["", "All"], ...kinds];
    // Where there is no room for buttons side by side.
    const field = h("select.narrow", { "aria-label": "State", onchange: () => look({ state: field.value }) },
        choices.map(([kind, title]) => h("option", { value: kind }, () => `${title} (${count(number(kind)())})`)));
    effect(() => (field.value = state()));
    return [
        h("div.choice.wide", { role: "group", "aria-label": "State" },
            choices.map(([kind, title]) => option(kind, title, number(kind)))), field,
    ];
}

function sorting(sort) {
    const field = h("select", { "aria-label": "Sort by", onchange: () => look({ sort: field.value, order: null }) },
        sorts.map(([name, title]) => h("option", { value: name }, `Sort: ${title}`)));
    effect(() => (field.value = sort().by));
    return h("div.sorting", null, field, h("button.quiet", {
        type: "button", onclick: () => look({ order: sort().order === "asc" ? "desc" : "asc" }),
        "aria-label": () => (sort().order === "asc" ? "Ascending; turn the order" : "Descending; turn the order"),
        title: "Turn the order",
    }, () => (sort().order === "asc" ? "↑" : "↓")));
}

/** What can be done with those that are chosen; it stands in the place of the filters meanwhile. */
function actions(shown, chosen) {
    const hashes = () => [...chosen.peek()];
    const button = (text, run, kind = "button") => h(kind, { type: "button", onclick: (event) => run(event.target) }, text);
    const some = (name) => (target) => act(name, hashes(), target);
    return h("div.chosen-bar", { role: "group", "aria-label": "Chosen transfers", hidden: () => chosen.value.size === 0 },
        h("b", { role: "status" }, () => `${count(chosen.value.size)} chosen`),
        button("Pause", some("pause")), button("Resume", some("resume")), button("Recheck", some("recheck")),
        button("Ask trackers", some("announce")),
        button("Remove …", async () => {
            if (await remove(hashes())) chosen.value = new Set();
        }, "button.grave"),
        h("button.quiet", { type: "button", hidden: () => chosen.value.size >= shown.value.length,
            onclick: () => (chosen.value = new Set(shown.peek().map((one) => one.hash))) },
            () => `Choose all ${count(shown.value.length)}`),
        h("button.quiet", { type: "button", onclick: () => (chosen.value = new Set()) }, "Choose none"));
}

const emptyPage = (isEmpty) => h("div.empty", { hidden: () => !isEmpty() },
    h("h2", null, "Nothing is transferred yet"),
    h("p", null, "Drop .torrent files anywhere on this page, paste a magnet link, or"),
    h("div.row", null,
        h("button.primary", { type: "button", onclick: () => openAdd() }, "Add a transfer"),
        h("a.button", { href: "#/create" }, "Share your own files")));

// MARK: The list

function listing(shown, chosen, sort) {
    let anchor = null;
    const choose = (hash, isOn, isRange) => {
        const next = new Set(chosen.peek());
        const order = shown.peek().map((one) => one.hash);
        const [from, to] = [order.indexOf(anchor), order.indexOf(hash)];
        const some = isRange && from >= 0 ? order.slice(Math.min(from, to), Math.max(from, to) + 1) : [hash];
        for (const one of some) next[isOn ? "add" : "delete"](one);
        anchor = hash;
        chosen.value = next;
    };
    const allBox = h("input", {
        type: "checkbox", "aria-label": "Choose all that are shown",
        checked: () => chosen.value.size > 0 && chosen.value.size >= shown.value.length,
        onchange: () => (chosen.value = allBox.checked ? new Set(shown.peek().map((one) => one.hash)) : new Set()),
    });
    effect(() => (allBox.indeterminate = chosen.value.size > 0 && chosen.value.size < shown.value.length));
    const columns = [
        { name: allBox, class: "pick" },
        { name: "Name", sort: "name" },
        { name: "Done", sort: "done", first: "desc", class: "done.wide" },
        { name: "Down", sort: "down", first: "desc", class: "number.rate.wide" },
        { name: "Up", sort: "up", first: "desc", class: "number.rate.wide" },
        { name: "Time left", sort: "left", class: "number.left-time.wide" },
        { name: "Peers", sort: "peers", first: "desc", class: "number.few.wide" },
        { name: "Ratio", sort: "ratio", first: "desc", class: "number.few.wide" },
        { name: h("span.unseen", null, "Pause or resume"), class: "act" },
    ];
    const table = bigTable({
        label: "Transfers", columns, noun: "transfer", empty: "No transfer is like that.",
        what: () => JSON.stringify([route.value.query.q ?? "", route.value.query.state ?? "", sort()]),
        sort, sorted: (by, order) => look({ sort: by, order }),
        key: (one) => one.hash,
        load: async (after, limit) => {
            const all = shown.peek();
            const start = Number(after ?? 0);
            const end = start + limit;
            return { rows: all.slice(start, end), next: end < all.length ? String(end) : null, total: all.length };
        },
        row: (one) => row(one, chosen, choose),
    });
    table.element.addEventListener("keydown", (event) => {
        if (event.key !== "x" || event.ctrlKey || event.metaKey || event.altKey) return;
        event.target.closest("tr")?.querySelector("input[type=checkbox]")?.click();
    });
    return table;
}

function row(one, chosen, choose) {
    const said = computed(() => words(one.value));
    const isWholeWidth = () => one.value.progress >= 1;
    return [
        h("td.pick", null, h("input", {
            type: "checkbox", "aria-label": () => `Choose ${one.value.name ?? one.value.hash}`.slice(0, 200),
            checked: () => chosen.value.has(one.value.hash),
            onclick: (event) => choose(one.peek().hash, event.target.checked, event.shiftKey),
        })),
        h("td.name", null,
            h("a", { href: () => href(["transfers", one.value.hash]) }, () => nameOf(one.value.name)),
            h("span.says", null, () => badge(said.value.tone, said.value.badge), " ",
                h("span.text", { title: () => said.value.text }, () => named(said.value.text, 300))),
            h("span.says.narrow", null, () => brief(one.value)),
            h("span.narrow.thin", null, () => progressBar(one.value))),
        h("td.done.wide", null, () => progressBar(one.value),
            h("span.sub", null, h("b", { hidden: isWholeWidth }, () => percent(one.value.progress), " "), () => far(one.value))),
        h("td.number.rate.wide", null, () => rateIfAny(one.value.downRate)),
        h("td.number.rate.wide", null, () => rateIfAny(one.value.upRate)),
        h("td.number.left-time.wide", null, () => (one.value.secondsLeft > 0 ? span(one.value.secondsLeft) : "")),
        h("td.number.few.wide", { title: () => swarm(one.value) }, () => count(one.value.peers)),
        h("td.number.few.wide", null, () => ratio(one.value.ratio)),
        h("td.act", null, h("button.quiet", {
            type: "button", "aria-label": () => `${runs(one.value) ? "Pause" : "Resume"} ${one.value.name ?? ""}`.slice(0, 200),
            title: () => (runs(one.value) ? "Pause" : "Resume"),
            onclick: (event) => act(runs(one.peek()) ? "pause" : "resume", [one.peek().hash], event.currentTarget),
        }, () => icon(runs(one.value) ? "pause" : "resume"))),
    ];
}

/** How the swarm is, as trackers tell it. */
const swarm = (one) => (Number.isFinite(one.seeders)
    ? `${counted(one.seeders, "seeder")} and ${counted(one.leechers ?? 0, "leecher")}, as its trackers say` : "");

/** What narrow windows show in the place of columns. */
function brief(one) {
    return [
        one.progress < 1 ? percent(one.progress) : bytes(one.byteCount),
        one.downRate > 0 ? `↓ ${rate(one.downRate)}` : "", one.upRate > 0 ? `↑ ${rate(one.upRate)}` : "",
        Number.isFinite(one.secondsLeft) && one.secondsLeft > 0 ? span(one.secondsLeft) : "",
    ].filter(Boolean).join(" · ");
}

/** A bar in the colour of what the transfer does. */
export function progressBar(transfer) {
    const text = `${percent(transfer.progress)} ${kindOf(transfer) === "checking" ? "checked" : "done"}`;
    return h(`span.bar.is-${kindOf(transfer)}`, { role: "img", "aria-label": text, title: text },
        h("span", { style: { width: `${Math.min(Math.max(transfer.progress ?? 0, 0), 1) * 100}%` } }));
}
