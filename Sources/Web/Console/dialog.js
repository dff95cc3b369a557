// What the console says and asks: notices that go by, and questions before anything that is not undone by a click.

import { h, byId } from "./dom.js";

/** Says something: `good`, `warn` or `bad`. What is bad stays until it is closed. */
export function tell(content, tone = "good") {
    const box = h(`div.notice.${tone}`, { role: tone === "bad" ? "alert" : "status" }, h("span", null, content),
        h("button.quiet", { type: "button", "aria-label": "Close this notice", onclick: () => box.remove() }, "✕"));
    byId("notices").append(box);
    if (tone !== "bad") setTimeout(() => box.remove(), tone === "good" ? 6000 : 15_000);
    return box;
}

/** Does what may be refused, and says how it went. Returns whether it was done. */
export async function attempt(work, done, button) {
    if (button) button.disabled = true;
    try {
        const result = await work();
        if (done) tell(typeof done === "function" ? done(result) : done);
        return true;
    } catch (problem) {
        tell(problem.message, "bad");
        return false;
    } finally {
        if (button) button.disabled = false;
    }
}

/**
 * Asks before something is done.
 *
 * @param question { title, text, action, isGrave, typed, fields }: `typed` is a text that has to be typed first,
 * `fields`
 *     are further elements of the form.
 * @returns the form's values where the action was chosen, else null.
 */
export function ask({ title, text, action, isGrave = false, typed = null, fields = [] }) {
    return new Promise((answered) => {
        const button = h(isGrave ? "button.grave" : "button.primary", { value: "yes", disabled: typed !== null },
            action);
        const field = typed === null ? null : h("input", {
            type: "text", name: "typed", autocomplete: "off", spellcheck: "false",
            oninput: () => (button.disabled = field.value !== typed),
        });
        const form = h("form", { method: "dialog" },
            h("h2", { id: "question" }, title),
            [text].flat().map((one) => h("p", null, one)),
            field && h("label", null, h("span", null, "Type ", h("code", null, typed), " to go on"), field),
            fields,
            h("div.row.end", null,
                h("button.quiet", { type: "button", onclick: () => box.close("no") }, "Cancel"), button));
        const box = h("dialog", { "aria-labelledby": "question" }, form);
        box.addEventListener("close", () => {
            answered(box.returnValue === "yes" ? Object.fromEntries(new FormData(form)) : null);
            box.remove();
        });
        document.body.append(box);
        box.showModal();
    });
}

/** Shows something that is closed by Esc or its button. */
export function show(title, content) {
    const box = h("dialog", { "aria-labelledby": "question" }, h("form", { method: "dialog" },
        h("h2", { id: "question" }, title), content,
        h("div.row.end", null, h("button.primary", { value: "yes" }, "Close"))));
    box.addEventListener("close", () => box.remove());
    document.body.append(box);
    box.showModal();
}

/** Whether somebody is in the middle of something that a change of the page would lose. */
export function isBusy() {
    const one = document.activeElement;
    const isTyping = one?.matches?.("input:not([type=search]), textarea, select") && one.value !== "";
    return Boolean(document.querySelector("dialog[open], [data-busy]")) || Boolean(isTyping);
}
