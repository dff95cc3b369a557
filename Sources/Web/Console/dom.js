// Elements by hand, and safe by construction: text only ever becomes a text node, with what could deceive made visible.
//
// Nothing here, or anywhere in the console, parses markup. What names, addresses and sentences hold is shown, not
// obeyed: control characters and those that turn the writing direction appear as escapes, and a `bdi` keeps right-to-
// left names from turning what stands beside them.

import { effect, signal, scope, onEnd } from "./signals.js";

const harmful = /[\u0000-\u001f\u007f-\u009f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060\u2066-\u2069\ufeff]|[\u{e0000}-\u{e007f}]/gu;
const links = /^(?:#|\/(?!\/)|https?:\/\/|magnet:\?|data:image\/svg\+xml,)/;
const drawing = "http://www.w3.org/2000/svg";

/** The text with each harmful character as an escape such as ⟨U+202E⟩. */
export function visible(text) {
    return String(text).replace(harmful, (c) => `⟨U+${c.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}⟩`);
}

/**
 * Makes an element: `h("a.quiet", { href: "#/swarms" }, "Swarms")`.
 *
 * A property or child that is a function is an effect: it follows the signals that it reads. Children are strings,
 * numbers, elements, arrays of those, or null for nothing.
 */
export function h(kind, properties, ...children) {
    const [tag, ...classes] = kind.split(".");
    const element = tag === "svg" || tag === "path" || tag === "circle"
        ? document.createElementNS(drawing, tag) : document.createElement(tag);
    if (classes.length) element.setAttribute("class", classes.join(" "));
    for (const [name, value] of Object.entries(properties ?? {})) {
        if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
        else if (typeof value === "function") effect(() => set(element, name, value()));
        else set(element, name, value);
    }
    append(element, children);
    return element;
}

function set(element, name, value) {
    if (name === "class") {
        for (const [one, isOn] of Object.entries(value)) element.classList.toggle(one, Boolean(isOn));
    } else if (name === "style") {
        for (const [one, text] of Object.entries(value)) element.style.setProperty(one, text);
    } else if (name === "value" || name === "checked" || name === "disabled" || name === "hidden") {
        element[name] = value;
    } else if (value === null || value === undefined || value === false) {
        element.removeAttribute(name);
    } else {
        const text = value === true ? "" : visible(value);
        if ((name === "href" || name === "src") && !links.test(text)) return element.removeAttribute(name);
        if (element.getAttribute(name) !== text) element.setAttribute(name, text);
    }
}

function append(element, children) {
    for (const child of children.flat(Infinity)) {
        if (child === null || child === undefined || child === false) continue;
        if (child instanceof Node) element.append(child);
        else if (typeof child === "function") element.append(following(child));
        else element.append(document.createTextNode(visible(child)));
    }
}

/** A text that follows signals; where `make` gives an element, or nothing, a place that holds it. */
function following(make) {
    const text = document.createTextNode("");
    let place = null;
    effect(() => {
        const value = make();
        if (value instanceof Node || Array.isArray(value)) {
            place ??= replaceByPlace(text);
            place.replaceChildren(...[value].flat(Infinity).filter((one) => one instanceof Node));
        } else {
            const shown = value === null || value === undefined || value === false ? "" : visible(value);
            if (place) place.replaceChildren(shown);
            else if (text.data !== shown) text.data = shown;
        }
    });
    return place ?? text;
}

function replaceByPlace(text) {
    const place = document.createElement("span");
    place.className = "contents";
    text.replaceWith(place);
    return place;
}

/** A stranger's words, apart from the text around them, and cut where they are endless. */
export function named(text, most = 400) {
    const all = String(text);
    const isLong = all.length > most;
    const shown = isLong ? all.slice(0, most).replace(/[\ud800-\udbff]$/, "") : all;
    const parts = visible(shown).split(/(⟨U\+[0-9A-F]+⟩)/);
    return h("bdi", null, parts.map((part, at) => (at % 2 ? h("span.escape", null, part) : part)),
        isLong ? h("span.muted", null, ` … (${all.length.toLocaleString("en")} characters)`) : null);
}

/**
 * Keeps the children of `parent`, after those that it has already, as `items` says: one child for each key, in order,
 * made once by `make(item, key)`, where `item` is a signal that changes with it. So what has the focus keeps it.
 */
export function list(parent, items, key, make) {
    const made = new Map();
    const before = parent.lastChild;
    effect(() => {
        const all = items();
        const keys = all.map(key);
        const focused = parent.contains(document.activeElement) ? document.activeElement : null;
        const kept = new Set(keys);
        for (const [id, entry] of made) {
            if (kept.has(id)) continue;
            entry.element.remove();
            entry.end();
            made.delete(id);
        }
        let at = before ? before.nextSibling : parent.firstChild;
        all.forEach((item, number) => {
            const id = keys[number];
            let entry = made.get(id);
            if (!entry) {
                const value = signal(item);
                const [element, end] = scope(() => make(value, id));
                made.set(id, (entry = { value, element, end }));
            }
            entry.value.value = item;
            if (entry.element === at) at = at.nextSibling;
            else parent.insertBefore(entry.element, at);
        });
        // What is moved loses the focus.
        if (focused?.isConnected && document.activeElement !== focused) focused.focus({ preventScroll: true });
    });
    onEnd(() => made.forEach((entry) => entry.end()));
    return parent;
}

/** Listens until the scope ends. */
export function listen(target, event, handler, options) {
    target.addEventListener(event, handler, options);
    onEnd(() => target.removeEventListener(event, handler, options));
}

/** Runs every so many milliseconds until the scope ends. */
export function every(milliseconds, run) {
    const timer = setInterval(run, milliseconds);
    onEnd(() => clearInterval(timer));
}

export const byId = (id) => document.getElementById(id);
