// Small parts that several pages have: choices beside each other, a search field, figures with their names, a copied
// text.

import { h, named } from "./dom.js";
import { tell } from "./dialog.js";

/** Icons of 24 by 24, drawn with strokes. */
const icons = {
    overview: "M3 13h4l3-8 4 14 3-6h4",
    trackers: "M4 5h16v5H4zM4 14h16v5H4zM8 7.5h.01M8 16.5h.01",
    swarms: "M12 8a2 2 0 1 0 0-4 2 2 0 0 0 0 4zM5 19a2 2 0 1 0 0-4 2 2 0 0 0 0 4zM19 19a2 2 0 1 0 0-4 2 2 0 0 0 0 4zM11 8l-5 7M13 8l5 7M7 17h10",
    timeline: "M4 6h8M9 12h10M6 18h9M4 3v18",
    torrents: "M6 3h8l4 4v14H6zM14 3v4h4M9 13l3 3 3-3M12 9v7",
    users: "M12 11a4 4 0 1 0 0-8 4 4 0 0 0 0 8zM4 21c1-5 4-7 8-7s7 2 8 7",
    transfers: "M7 4v14M3 14l4 4 4-4M17 20V6M13 10l4-4 4 4",
    create: "M12 5v14M5 12h14",
    pause: "M8 5v14M16 5v14",
    resume: "M7 4l12 8-12 8z",
    folder: "M3 6h6l2 3h10v10H3z",
    file: "M6 3h8l4 4v14H6zM14 3v4h4",
    simulator: "M9 3h6M10 3v6l-5 9a2 2 0 0 0 2 3h10a2 2 0 0 0 2-3l-5-9V3M7 15h10",
    settings: "M4 7h9M17 7h3M4 17h3M11 17h9M15 9a2 2 0 1 0 0-4 2 2 0 0 0 0 4zM9 19a2 2 0 1 0 0-4 2 2 0 0 0 0 4z",
};

export const icon = (name) => h("svg.icon", { viewBox: "0 0 24 24", width: "18", height: "18", "aria-hidden": "true" },
    h("path", { d: icons[name] }));

/** One of several, as buttons: options are [value, text]. */
export function choice(label, options, value, choose) {
    return h("div.choice", { role: "group", "aria-label": label }, options.map(([one, text]) =>
        h("button", { type: "button", "aria-pressed": () => String(value() === one), onclick: () => choose(one) },
            text)));
}

/** A search field that waits until the typing pauses. It is what `/` goes to. */
export function searchField(label, value, search) {
    let timer = null;
    const field = h("input.search", {
        type: "search", "aria-label": label, placeholder: label, value, spellcheck: "false", autocomplete: "off",
        maxlength: "200", "data-search": true,
        oninput: () => {
            clearTimeout(timer);
            timer = setTimeout(() => search(field.value.trim()), 250);
        },
    });
    return field;
}

/** A figure under its name. */
export const figure = (name, value, title) => h("div", { title: title ?? null }, h("dt", null, name),
    h("dd", null, value));

/** A name that may be unknown. */
export const nameOf = (name) => (name === null || name === undefined
    ? h("span.muted", null, "unknown name") : named(name === "" ? "(empty name)" : name));

export const badge = (tone, text, title) => h(`span.badge.${tone}`, { title: title ?? null }, text);

/** A button that copies a text. */
export function copyButton(text, what) {
    return h("button.quiet", {
        type: "button",
        onclick: async () => {
            try {
                await navigator.clipboard.writeText(text());
                tell(`${what} copied.`);
            } catch {
                tell(`The browser does not let this page copy. ${what}: ${text()}`, "warn");
            }
        },
    }, `Copy ${what.toLowerCase()}`);
}

/** The share that is there of a whole, as a bar with words. */
export function bar(share, text) {
    return h("span.bar", { role: "img", "aria-label": text, title: text },
        h("span", { style: { width: `${Math.min(Math.max(share, 0), 1) * 100}%` } }));
}

export const heading = (title, ...more) => h("div.heading", null, h("h1", { tabindex: "-1" }, title), more);
