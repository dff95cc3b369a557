// What is around the pages, whoever shows them: the menu that folds away, the theme, the keys that work everywhere, and
// one page after the other.

import { show } from "./dialog.js";
import { byId, h } from "./dom.js";
import { scope, signal } from "./signals.js";

/** What this browser keeps for the page; null where it keeps nothing. */
export function stored(key, value) {
    try {
        if (value !== undefined) localStorage.setItem(key, value);
        return localStorage.getItem(key);
    } catch {
        return null;
    }
}

// MARK: Theme and menu

/** What was chosen: system, light or dark. */
export const theme = signal(document.documentElement.dataset.theme ?? "system");

export function turnTheme() {
    const next = { system: "light", light: "dark", dark: "system" }[theme.peek()];
    theme.value = next;
    stored("theme", next);
    if (next === "system") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = next;
}

/** Has the menu of narrow windows fold away, and the first link of all lead to the content. */
export function readyFrame() {
    const menu = byId("menu");
    const open = (isOpen) => {
        menu.setAttribute("aria-expanded", String(isOpen));
        byId("drawer").classList.toggle("open", isOpen);
    };
    menu.addEventListener("click", () => open(menu.getAttribute("aria-expanded") !== "true"));
    addEventListener("hashchange", () => open(false));
    byId("skip").addEventListener("click", (event) => {
        event.preventDefault();
        byId("main").focus();
    });
}

// MARK: Pages

let endPage = () => {};
let isFirst = true;

/** Shows a page in the place of the one before. Its heading gets the focus, but not that of the first one. */
export function openPage(make, isWaiting) {
    endPage();
    const [element, end] = scope(make);
    endPage = end;
    byId("page").replaceChildren(element);
    byId("main").scrollTop = 0;
    if (!isFirst && !isWaiting) element.querySelector("h1")?.focus({ preventScroll: true });
    isFirst = isWaiting;
}

// MARK: Keys

const areKeysOn = signal(stored("keys") !== "off");

/** Tells the keys: rows are [keys, what they do]. */
export function showKeys(rows) {
    show("Keys", [
        h("table.keys", null, h("tbody", null, rows.map(([keys, what]) =>
            h("tr", null, h("th", { scope: "row" },
                keys.split(" ").map((one) => (one === "…" ? " … " : [h("kbd", null, one), " "]))),
                h("td", null, what))))),
        h("label.check", null, h("input", {
            type: "checkbox", checked: areKeysOn.peek(),
            onchange: (event) => {
                areKeysOn.value = event.target.checked;
                stored("keys", event.target.checked ? "on" : "off");
            },
        }), h("span", null, "Keys of a single letter or digit work")),
    ]);
}

/**
 * Listens to the keys of a single letter or digit, wherever the focus is but in a field.
 *
 * @param openNumber opens the page of a number, and tells whether there is one.
 * @param acts what other keys do.
 */
export function listenToKeys(openNumber, acts) {
    addEventListener("keydown", (event) => {
        if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
        const isField = event.target.matches?.("input, textarea, select, [contenteditable]");
        if (event.key === "Escape" && isField) return event.target.blur();
        if (isField || !areKeysOn.peek()) return;
        if (openNumber(Number(event.key))) return;
        const all = { t: turnTheme, T: turnTheme, "/": () => document.querySelector("[data-search]")?.focus(), ...acts };
        if (!all[event.key]) return;
        event.preventDefault();
        all[event.key]();
    });
}
