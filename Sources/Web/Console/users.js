// Users: who may log in, and what each may do; add one, change its role or password, remove it; passkeys.

import { getTagged, order, part } from "./api.js";
import { ask, attempt, show } from "./dialog.js";
import { h, list, named } from "./dom.js";
import { counted } from "./format.js";
import { accessWords, ownPasskey, renew, takeAway } from "./passkeys.js";
import { computed, effect, signal } from "./signals.js";
import { may, state } from "./stream.js";
import { badge, copyButton, heading } from "./widgets.js";

const roles = [
    ["viewer", "sees everything but the users"], ["uploader", "and uploads and deletes torrents"],
    ["operator", "and hands over, cuts, stops and starts"], ["admin", "and manages users"],
];

export function usersPage() {
    const users = signal([]);
    const tag = signal(null);
    const problem = signal("");
    const isTold = signal(false);
    const self = computed(() => state.value?.login?.user?.name ?? null);
    const isAdmin = computed(() => may("admin"));
    const learn = async () => {
        // Whoever is no admin sees the own passkey only.
        if (!isAdmin.peek()) return;
        try {
            const answer = await getTagged("users");
            [users.value, tag.value, problem.value, isTold.value] = [answer.body.users, answer.tag, "", true];
        } catch (refusal) {
            problem.value = refusal.message;
        }
    };
    effect(() => isAdmin.value && learn());
    const change = async (work, done, button) => {
        if (work) await attempt(work, done, button);
        await learn();
    };
    const tagged = () => (tag.peek() ? { "If-Match": tag.peek() } : {});
    return h("div", null,
        heading("Users", h("button.primary",
            { type: "button", id: "add-user", hidden: () => !may("admin"), onclick: () => add(change) },
            "Add a user …")),
        h("p.problem", { role: "alert" }, () => problem.value),
        h("div.table-box", { hidden: () => users.value.length === 0 }, h("table.cards", { role: "table", "aria-label": "Users" },
            h("thead", { role: "rowgroup" },
                h("tr", { role: "row" }, ["Name", "Role", "From", "Passkey", ""].map((name) =>
                    h("th", { role: "columnheader", scope: "col" }, name)))),
            list(h("tbody", { role: "rowgroup" }), () => users.value, (one) => one.name,
                (one) => userRow(one, change, tagged)))),
        h("p.muted", { hidden: () => !isTold.value }, () => (users.value.length === 0
            ? "There is no user so far: whoever reaches this console may do everything. Let the first one be an admin."
            : `${counted(users.value.length, "user")}. Those from a file are changed in that file; those of the console `
                + "are replicated, and survive a failover.")),
        h("p.muted", { id: "access-mode" }, accessWords),
        () => (self.value ? ownPasskey(self.value, learn) : null),
        h("section.card.roles", null, h("h2", null, "Roles"),
            h("dl.stacked", null, roles.map(([name, text]) => [h("dt", null, name), h("dd", null, text)]))));
}

function userRow(one, change, tagged) {
    const { name } = one.peek();
    const path = `users/${part(name)}`;
    const setPasskey = async (event) => {
        const made = await renew(name, one.peek().hasPasskey, event.target);
        if (made) show(`The passkey of ${name}`, h("p", null, h("code", null, made.passkey), " ",
            copyButton(() => made.passkey, "Passkey")));
        await change();
    };
    const removePasskey = async (event) => {
        await takeAway(name, event.target);
        await change();
    };
    const isFixed = () => one.value.origin === "file" || !may("admin");
    const setRole = (event) => change(() => order("PUT", path, { role: event.target.value }, tagged()),
        "The role is changed.");
    const setPassword = async (event) => {
        const answer = await ask({ title: "Change the password", action: "Change it",
            text: h("span", null, "Of ", named(name), ". All its sessions end."), fields: [passwordField()] });
        if (answer) await change(() => order("PUT", path, { role: one.peek().role, password: answer.password },
            tagged()), "The password is changed.", event.target);
    };
    const remove = async (event) => {
        const isSure = await ask({ title: "Remove this user?", action: "Remove", isGrave: true,
            text: h("span", null, named(name), " cannot log in any more; its sessions end.") });
        if (isSure) await change(() => order("DELETE", path, undefined, tagged()), "The user is removed.",
            event.target);
    };
    return h("tr", { role: "row" },
        h("th", { role: "rowheader", scope: "row", "data-label": "Name" }, named(name), " ",
            () => (state.value?.login?.user?.name === name ? badge("accent", "you") : null)),
        h("td", { role: "cell", "data-label": "Role" },
            () => (isFixed() ? one.value.role : roleField(one.value.role, setRole, name))),
        h("td", { role: "cell", "data-label": "From" }, () => badge("plain", one.value.origin)),
        h("td", { role: "cell", "data-label": "Passkey" }, h("div.row", null,
            () => (one.value.hasPasskey ? "yes" : "none"),
            h("button.quiet", { type: "button", onclick: setPasskey, "aria-label": `Passkey of ${name}` },
                () => (one.value.hasPasskey ? "Renew …" : "Make one")),
            h("button.quiet.bad-text", { type: "button", hidden: () => !one.value.hasPasskey, onclick: removePasskey,
                "aria-label": `Take the passkey of ${name} away` }, "Take away …"))),
        h("td", { role: "cell" }, h("div.row", { hidden: isFixed },
            h("button.quiet", { type: "button", onclick: setPassword }, "Password …"),
                h("button.quiet.bad-text", { type: "button", onclick: remove }, "Remove …"))));
}

function roleField(role, onchange, name) {
    const field = h("select", { name: "role", "aria-label": name ? `Role of ${name}` : "Role",
        onchange: onchange ?? (() => {}) },
        roles.map(([one]) => h("option", { value: one }, one)));
    field.value = role;
    return field;
}

const passwordField = () => h("label", null, h("span", null, "Password"),
    h("input", { type: "password", name: "password", autocomplete: "new-password", required: true, minlength: "8" }));

async function add(change) {
    const answer = await ask({ title: "Add a user", action: "Add", text: [], fields: [
        h("label", null, h("span", null, "Name"),
            h("input", { type: "text", name: "name", autocomplete: "off", spellcheck: "false", required: true,
            maxlength: "64" })),
        h("label", null, h("span", null, "Role"), roleField("viewer")), passwordField(),
    ] });
    if (!answer) return;
    await change(() => order("PUT", `users/${part(answer.name)}`, { role: answer.role, password: answer.password },
        { "If-None-Match": "*" }), "The user is added.");
}
