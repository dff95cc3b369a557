// A table of very many rows: it asks for a page at a time, by cursor, and keeps only those rows in the document that
// are seen.
//
// Pages follow each other by the cursors that the tracker gives; those far from what is seen are forgotten, and asked
// for again when they come near. What is seen is asked for anew as time goes by. It is a table to screen readers: rows
// have their number, and the whole its size.

import { h, list, listen } from "./dom.js";
import { count } from "./format.js";
import { effect, onEnd, signal, untracked } from "./signals.js";

const pageSize = 100;
/** Pages that are kept beside the ones that are seen. */
const near = 3;
/** Rows beyond the edge of what is seen, so that a scroll finds them there. */
const slack = 8;

/**
 * @param options { label, columns, load, key, row, empty, noun, sort, sorted, what, after, moved }:
 *     columns: [{ name, class, sort (the API's word), first (the order it is first sorted in) }];
 *     load(after, limit, cancel) gives { rows, next, total };
 *     row(item) gives the cells of a row, `item` being a signal; sort() gives { by, order }, and sorted(by, order) is
 *     told; what() names what is listed, a change of it begins anew; after() is the cursor to begin at, and
 *     moved(cursor) is told what page is at the top.
 */
export function bigTable(options) {
    const view = signal({ rows: [], total: null, state: "loading", words: "", isFromStart: true });
    const body = h("tbody", null);
    const above = h("tr.spacer", { "aria-hidden": "true" }, h("td", null));
    const below = h("tr.spacer", { "aria-hidden": "true" }, h("td", null));
    const table = h("table.big", { "aria-label": options.label, "aria-rowcount": () => rowCount(view.value) },
        h("thead", null, h("tr", { "aria-rowindex": "1" }, options.columns.map((column) => header(column, options)))),
        h("tbody", null, above), body, h("tbody", null, below));
    const box = h("div.scroller", { tabindex: "-1" }, table);
    const pages = new Pages(options.load);
    let place = null;
    const number = (entry) => (pages.isFromStart ? entry.value.place + 2 : null);
    list(body, () => view.value.rows, (one) => one.id, (entry) =>
        h("tr", { "aria-rowindex": () => number(entry) }, options.row({
            get value() { return entry.value.item; }, peek: () => entry.peek().item,
        })));

    function draw() {
        const height = rowHeight(box);
        const all = pages.length;
        const top = Math.max(Math.floor(box.scrollTop / height) - slack, 0);
        const bottom = Math.min(Math.ceil((box.scrollTop + box.clientHeight) / height) + slack, all);
        const rows = distinct(pages.between(top, bottom), options.key);
        above.firstChild.style.height = `${(rows[0]?.place ?? 0) * height}px`;
        below.firstChild.style.height = `${Math.max(all - ((rows.at(-1)?.place ?? -1) + 1), 0) * height}px`;
        view.value = { rows, total: pages.total, state: pages.state, words: pages.words,
            isFromStart: pages.isFromStart };
        pages.want(top, bottom);
        if (!pages.isBegun || !options.moved) return;
        place = { ...place, after: pages.cursorAt(Math.floor(box.scrollTop / height)) };
        options.moved(place.after);
    }
    pages.changed = draw;
    listen(box, "scroll", draw, { passive: true });
    const observer = new ResizeObserver(draw);
    observer.observe(box);
    onEnd(() => observer.disconnect());
    onEnd(() => pages.end());
    listen(box, "keydown", (event) => walk(event, box, body));
    effect(() => {
        const next = { what: options.what(), after: options.after?.() ?? null };
        if (next.what === place?.what && next.after === place.after) return;
        place = next;
        box.scrollTop = 0;
        untracked(() => pages.begin(next.after));
    });
    return {
        element: h("div.listing", null, box, h("p.tally", { role: "status" }, () => tally(view.value, options))),
        refresh: () => pages.refresh(),
        view,
    };
}

const rowCount = (view) => (view.total === null || !view.isFromStart ? -1 : view.total + 1);

/** An item that has come to another page meanwhile may be there twice: the second gets a name of its own. */
function distinct(rows, key) {
    const seen = new Set();
    return rows.map((one) => {
        const name = key(one.item);
        const id = seen.has(name) ? `${name} ${one.place}` : name;
        seen.add(name);
        return { ...one, id };
    });
}

function header(column, options) {
    if (!column.sort) return h(column.class ? `th.${column.class}` : "th", { scope: "col" }, column.name);
    const direction = () => (options.sort().by === column.sort ? options.sort().order : null);
    return h(column.class ? `th.${column.class}` : "th", {
        scope: "col", "aria-sort": () => ({ asc: "ascending", desc: "descending" })[direction()] ?? "none",
    }, h("button.sort", {
        type: "button",
        onclick: () => {
            const first = column.first ?? "asc";
            const isOther = direction() === first;
            options.sorted(column.sort, isOther ? (first === "asc" ? "desc" : "asc") : first);
        },
    }, column.name, h("span.arrow", { "aria-hidden": "true" }, () => ({ asc: " ↑", desc: " ↓" })[direction()] ?? "")));
}

function rowHeight(box) {
    return parseFloat(getComputedStyle(box).getPropertyValue("--row")) || 34;
}

function tally(view, options) {
    if (view.state === "failed") return view.words;
    if (view.total === null) return "Loading …";
    if (view.total === 0) return options.empty;
    return `${count(view.total)} ${view.total === 1 ? options.noun : `${options.noun}s`}`;
}

/** Arrows, page keys, Home and End move the focus from row to row. */
function walk(event, box, body) {
    const moves = { ArrowDown: 1, ArrowUp: -1, PageDown: 10, PageUp: -10 };
    const rows = [...body.rows];
    const at = rows.indexOf(event.target.closest("tr"));
    if (event.key === "Home" && at >= 0) {
        box.scrollTop = 0;
        event.preventDefault();
        return requestAnimationFrame(() => body.rows[0]?.querySelector("a, button")?.focus());
    }
    if (!(event.key in moves) || at < 0) return;
    event.preventDefault();
    const next = rows[Math.min(Math.max(at + moves[event.key], 0), rows.length - 1)];
    next.querySelector("a, button")?.focus({ preventScroll: true });
    next.scrollIntoView({ block: "nearest" });
}

/** The pages that are known: their cursors always, their rows where they are near. */
class Pages {
    changed = () => {};
    total = null;
    state = "loading";
    words = "";
    #all = [];
    #running = new Map();
    #generation = 0;

    constructor(load) {
        this.load = load;
    }

    /** Begins anew at a cursor. */
    begin(after) {
        this.end();
        this.#all = [{ after, rows: null, length: 0 }];
        this.total = null;
        this.state = "loading";
        this.#fetch(0);
        this.changed();
    }

    end() {
        this.#generation += 1;
        for (const cancel of this.#running.values()) cancel.abort();
        this.#running.clear();
    }

    get isBegun() {
        return this.state === "there";
    }

    get isFromStart() {
        return !this.#all[0]?.after;
    }

    get length() {
        return this.#all.reduce((sum, page) => sum + page.length, 0);
    }

    between(first, last) {
        const found = [];
        let place = 0;
        for (const page of this.#all) {
            for (let at = Math.max(first - place, 0); at < Math.min(last - place, page.length) && page.rows; at += 1) {
                found.push({ place: place + at, item: page.rows[at] });
            }
            place += page.length;
        }
        return found;
    }

    cursorAt(row) {
        return this.#all[this.#pageOf(row)]?.after ?? null;
    }

    #pageOf(row) {
        let place = 0;
        for (let at = 0; at < this.#all.length; at += 1) {
            place += this.#all[at].length;
            if (row < place) return at;
        }
        return this.#all.length - 1;
    }

    /** Sees to it that those rows are there, and one page more than that; forgets what is far away. */
    want(first, last) {
        const from = this.#pageOf(first);
        const to = this.#pageOf(last + pageSize / 2);
        this.#seen = [from, this.#pageOf(Math.max(last - 1, 0))];
        this.#all.forEach((page, at) => {
            if (at >= from && at <= to && !page.rows && !page.hasFailed) this.#fetch(at);
            if (at < from - near || at > to + near) page.rows = null;
        });
    }

    #seen = [0, 0];

    /** Asks anew for what is seen. */
    refresh() {
        for (let at = this.#seen[0]; at <= this.#seen[1]; at += 1) this.#fetch(at);
    }

    async #fetch(at) {
        const page = this.#all[at];
        if (!page || this.#running.has(page)) return;
        const cancel = new AbortController();
        const generation = this.#generation;
        this.#running.set(page, cancel);
        try {
            const answer = await this.load(page.after, pageSize, cancel.signal);
            if (generation !== this.#generation) return;
            page.rows = answer.rows;
            page.hasFailed = false;
            page.length = answer.rows.length;
            this.total = answer.total;
            this.state = "there";
            const isLast = at === this.#all.length - 1;
            if (answer.next && isLast) this.#all.push({ after: answer.next, rows: null, length: 0 });
            else if (answer.next) this.#all[at + 1].after = answer.next;
            else this.#all.length = at + 1;
        } catch (problem) {
            if (generation !== this.#generation) return;
            // It is asked for again by the next refresh.
            page.hasFailed = true;
            [this.state, this.words] = ["failed", problem.message];
        } finally {
            this.#running.delete(page);
        }
        this.changed();
    }
}
