// Other numbers and addresses for a tracker that is stopped: a form, with what is wrong beside each field.

import { has, order } from "./api.js";
import { tell } from "./dialog.js";
import { h, list } from "./dom.js";
import { effect, signal } from "./signals.js";
import { may, state } from "./stream.js";

const names = {
    id: "Number", "listen.udp": "UDP addresses", "listen.http": "HTTP addresses", "cluster.entry": "Entry",
    "cluster.group": "Multicast groups", "cluster.interface": "Interface of the groups",
    "cluster.advertise": "Announce URL that is told",
};
const entries = [["", "as the other settings say"], ["any", "any: each answers its own clients"],
    ["group", "group: the master answers"]];

/**
 * The form, while the tracker is stopped.
 *
 * @param told a signal with what the API tells of the settings, `tag` one with its tag, `learn` asks for them again.
 */
export function changeCard(told, tag, learn) {
    const problems = signal({});
    const rest = signal("");
    const isSending = signal(false);
    const fields = new Map();
    const all = () => (told.value?.settings ?? []).filter((one) => one.isChangeable);
    const isStopped = () => state.value.status.node.role === "stopped";
    const hasSaid = () => all().some((one) => one.kept !== undefined || one.source === "console");
    const keep = h("input", { type: "checkbox", name: "keep" });
    const send = async (method, body, done) => {
        isSending.value = true;
        try {
            await order(method, "settings", body, tag.peek() ? { "If-Match": tag.peek() } : {});
            [problems.value, rest.value] = [{}, ""];
            await learn();
            tell(done);
        } catch (refusal) {
            const found = refusal.problems ?? [];
            problems.value = Object.fromEntries(found.filter((one) => fields.has(one.key))
                .map((one) => [one.key, one.message]));
            rest.value = [found.length ? "" : refusal.message,
                ...found.filter((one) => !fields.has(one.key)).map((one) => one.message)].filter(Boolean).join(" ");
            fields.get(found.find((one) => fields.has(one.key))?.key)?.focus();
            // Somebody else was first: what is shown is old.
            if (refusal.status === 412) await learn();
        } finally {
            isSending.value = false;
        }
    };
    const change = (event) => {
        event.preventDefault();
        const settings = {};
        for (const one of all()) {
            const text = fields.get(one.key).value.trim();
            // What the console has said before is said again: a change takes the place of all of it.
            const isSaid = text !== one.typed || one.source === "console";
            if (isSaid && !(one.key === "cluster.entry" && text === "")) settings[one.key] = text;
        }
        return send("PUT", { settings, keep: keep.checked },
            keep.checked ? "The next start has these settings, and so has each start of the process."
                : "The next start has these settings; a new process has those from before.");
    };
    return h("section.card", { id: "change",
        hidden: () => !has("node") || !isStopped() || !may("operator") || all().length === 0 },
        h("h2", null, "Change while it is stopped"),
        h("p.muted", null, "Nothing is taken unless all is right. Start has the tracker use it. A list has commas; none empties it."),
        h("form", { onsubmit: change, novalidate: true },
            list(h("div.fields", null), all, (one) => one.key, (one, key) => field(one, key, problems, fields)),
            h("label.check", null, keep, h("span", null, "Keep for each start of the process")),
            h("p.problem", { role: "alert", id: "change-problem" }, () => rest.value),
            h("div.row", null, h("button.primary", { id: "do-change", disabled: () => isSending.value }, "Change"),
                h("button.quiet", { type: "button", id: "forget", hidden: () => !hasSaid(),
                    disabled: () => isSending.value,
                    onclick: () => send("DELETE", undefined, "Forgotten: the settings are as given elsewhere.") },
                    "Forget what the console has said"))));
}

function field(one, key, problems, fields) {
    const id = `change-${key.replaceAll(".", "-")}`;
    const problem = () => problems.value[key] ?? "";
    const properties = { id, name: key, "aria-describedby": `${id}-about ${id}-problem`,
        "aria-invalid": () => (problem() ? "true" : null) };
    const input = key === "cluster.entry"
        ? h("select", properties, entries.map(([value, text]) => h("option", { value }, text)))
        : h("input", { ...properties, type: "text", autocomplete: "off", spellcheck: "false", maxlength: "4096",
            inputmode: key === "id" ? "numeric" : null });
    // Once the options are there.
    effect(() => (input.value = one.value.typed));
    fields.set(key, input);
    return h("div.field", null,
        h("label", { for: id }, h("span", null, names[key] ?? key)), input,
        h("p.muted", { id: `${id}-about` }, () => `${one.value.about} From: ${sourceNames[one.value.source]}. ${keptNote(one.value)}`),
        h("p.problem", { id: `${id}-problem`, role: "alert" }, problem));
}

const sourceNames = { console: "this console", flag: "a flag", environment: "the environment", file: "the file",
    default: "the default" };

/** What is kept of a setting for each start, and whether that counts; empty where nothing is. */
export function keptNote(one) {
    if (one.kept === undefined) return "";
    const by = { flag: `the flag ${one.flag} goes`, environment: "a variable of the environment goes" }[one.keptOverriddenBy];
    return by ? `Kept for each start: ${one.kept}; but there ${by} before it.` : `Kept for each start: ${one.kept}.`;
}
