// The address after #: which page, of what, and how it is looked at. All of a page's state that is worth sharing is
// there.
//
//     #/swarms/HASH?sort=left&after=CURSOR

import { signal } from "./signals.js";

/** { path: ["swarms", "HASH"], query: { sort: "left" } } */
export const route = signal(parse(location.hash));

addEventListener("hashchange", () => (route.value = parse(location.hash)));

function parse(hash) {
    const [path, query = ""] = hash.replace(/^#\/?/, "").split(/\?(.*)/s);
    return {
        path: path.split("/").filter(Boolean).map(decoded),
        query: Object.fromEntries(new URLSearchParams(query)),
    };
}

function decoded(text) {
    try {
        return decodeURIComponent(text);
    } catch {
        return text;
    }
}

/** The address of a page: `href(["swarms", hash], { sort: "left" })`. */
export function href(path, query = {}) {
    const kept = Object.entries(query).filter(([, value]) => value !== null && value !== undefined && value !== "");
    const text = new URLSearchParams(kept).toString();
    return `#/${path.map(encodeURIComponent).join("/")}${text ? `?${text}` : ""}`;
}

/** Goes to a page. */
export function go(path, query) {
    location.hash = href(path, query);
}

/** Changes how the page is looked at, without a step in the history: null takes a part away. */
export function look(changes) {
    const { path, query } = route.peek();
    const next = href(path, { ...query, ...changes });
    if (next === location.hash) return;
    history.replaceState(null, "", next);
    route.value = parse(next);
}
