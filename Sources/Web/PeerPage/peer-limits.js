// Limits, of one transfer or of all: rates, peers, the ratio at which seeding ends.

import { order } from "/console/api.js";
import { attempt } from "/console/dialog.js";
import { h } from "/console/dom.js";
import { effect, signal } from "/console/signals.js";
import { pathOf } from "./peer-actions.js";
import { settings } from "./peer-stream.js";

const units = [["KiB/s", 2 ** 10], ["MiB/s", 2 ** 20]];

/** A number field; empty means that there is no limit. */
function numberField(name, label, empty, extra = {}) {
    const field = h("input", { type: "number", id: `limit-${name}`, min: "0", step: "any", placeholder: empty,
        inputmode: "decimal", ...extra });
    return { field, element: h("label", null, h("span", null, label), field) };
}

/** A rate with its unit. */
function rateField(name, label) {
    const { field } = numberField(name, label, "no limit");
    const unit = h("select", { "aria-label": `${label}, unit` }, units.map(([text, size]) =>
        h("option", { value: String(size) }, text)));
    return {
        element: h("div.rate-field", null, h("label", { for: `limit-${name}` }, h("span", null, label)),
            h("div.row", null, field, unit)),
        get: () => (field.value.trim() === "" ? null : Math.round(Number(field.value) * Number(unit.value))),
        set(bytes) {
            const size = bytes >= 2 ** 20 && bytes % (2 ** 20 / 8) === 0 ? 2 ** 20 : 2 ** 10;
            unit.value = String(size);
            field.value = bytes === null || bytes === undefined ? "" : String(Math.round((bytes / size) * 1000) / 1000);
        },
    };
}

/** A form that shows what is so, and keeps what is typed until it is saved. */
function limitsForm(fields, told, save, note) {
    const isTyped = signal(false);
    let before = null;
    const button = h("button.primary", { disabled: () => !isTyped.value }, "Save");
    const release = () => {
        before = null;
        isTyped.value = false;
    };
    effect(() => {
        const text = JSON.stringify(told() ?? null);
        if (isTyped.value || text === before || text === "null") return;
        before = text;
        for (const [name, field] of fields) field.set(JSON.parse(text)[name]);
    });
    return h("form.limits", {
        "data-busy": () => isTyped.value, oninput: () => (isTyped.value = true), onchange: () => (isTyped.value = true),
        onsubmit: async (event) => {
            event.preventDefault();
            const body = Object.fromEntries(fields.map(([name, field]) => [name, field.get()]));
            if (await attempt(() => save(body), "The limits are kept.", button)) release();
        },
    }, h("div.fields", null, fields.map(([, field]) => field.element)),
    h("p.muted", null, note),
    h("div.row", null, button, h("button.quiet", { type: "button", hidden: () => !isTyped.value, onclick: release },
        "Undo")));
}

const plain = ({ field, element }) => ({
    element, get: () => (field.value.trim() === "" ? null : Number(field.value)),
    set: (value) => (field.value = value ?? ""),
});

export function limitsPart(hash, one) {
    return h("div.part.card", null, limitsForm([
        ["maxDown", rateField("down", "Down at most")], ["maxUp", rateField("up", "Up at most")],
        ["maxPeers", plain(numberField("peers", "Peers at most", "as usual", { step: "1", min: "1" }))],
        ["ratio", plain(numberField("ratio", "Seed until the ratio is", "for ever"))],
    ], () => one.value?.limits, (body) => {
        if (body.maxPeers === null) delete body.maxPeers;
        return order("PATCH", pathOf(hash), body);
    }, "An empty field sets no limit. The limits of all transfers together are among the settings."));
}

export const globalLimits = () => limitsForm([
    ["maxDown", rateField("down", "Down at most")], ["maxUp", rateField("up", "Up at most")],
], () => settings.value && { maxDown: settings.value.maxDown, maxUp: settings.value.maxUp },
(body) => order("PATCH", "settings", body).then((told) => (settings.value = { ...settings.peek(), ...told })),
"For all transfers together, and kept when the peer starts again. An empty field sets no limit.");
