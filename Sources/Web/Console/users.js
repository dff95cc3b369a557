// Users: who may log in, and what each may do; add one, change its role or password, end its sessions, remove it;
// passkeys.

import { get, order, part } from "./api.js";
import { ask, attempt, show } from "./dialog.js";
import { h, list, named } from "./dom.js";
import { counted, day } from "./format.js";
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
    const problem = signal("");
    const isTold = signal(false);
    const self = computed(() => state.value?.login?.user?.name ?? null);
    const isAdmin = computed(() => may("admin"));
    const learn = async () => {
        // Whoever is no admin sees the own passkey only.
        if (!isAdmin.peek()) return;
        try {
            [users.value, problem.value, isTold.value] = [(await get("users")).users, "", true];
        } catch (refusal) {
            problem.value = refusal.message;
        }
    };
    effect(() => isAdmin.value && learn());
    const change = async (work, done, button) => {
        if (work) await attempt(work, done, button);
        await learn();
    };
    const open = signal(null);
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
                (one) => userRow(one, change, open)))),
        () => (open.value === null ? null : sessionsOf(open.value, () => (open.value = null))),
        h("p.muted", { hidden: () => !isTold.value }, () => (users.value.length === 0
            ? "There is no user so far: whoever reaches this console may do everything. Let the first one be an admin."
            : `${counted(users.value.length, "user")}. Those from a file are changed in that file; those of the console `
                + "are replicated, and survive a failover.")),
        h("p.muted", { id: "access-mode" }, accessWords),
        () => (self.value ? ownPasskey(self.value, learn) : null),
        h("section.card.roles", null, h("h2", null, "Roles"),
            h("dl.stacked", null, roles.map(([name, text]) => [h("dt", null, name), h("dd", null, text)]))));
}

function userRow(one, change, open) {
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
    // So that nobody's change of the meantime is undone.
    const tagged = () => ({ "If-Match": `"${one.peek().changedAt}"` });
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
        h("td", { role: "cell" }, h("div.row", null,
            h("button.quiet", { type: "button", "aria-label": `Sessions of ${name}`, onclick: () => (open.value = name) },
                "Sessions …"),
            h("button.quiet", { type: "button", hidden: isFixed, onclick: setPassword }, "Password …"),
            h("button.quiet.bad-text", { type: "button", hidden: isFixed, onclick: remove }, "Remove …"))));
}

/** The sessions and tokens of a user, each of which can be ended alone. */
function sessionsOf(name, close) {
    const sessions = signal(null);
    const problem = signal("");
    const path = `users/${part(name)}/sessions`;
    const learn = async () => {
        try {
            [sessions.value, problem.value] = [(await get(path)).sessions, ""];
        } catch (refusal) {
            problem.value = refusal.message;
        }
    };
    const end = async (one, button) => {
        const isSure = await ask({ title: one.isToken ? "Remove this token?" : "End this session?", isGrave: true,
            action: one.isToken ? "Remove the token" : "End the session",
            text: [one.isToken ? h("span", null, "Programs that use ", named(one.label), " are refused from now on.")
                : h("span", null, "Whoever uses it has to log in again."),
            one.isCurrent ? "It is the one of this browser: you will be logged out." : null].filter(Boolean) });
        if (!isSure) return;
        await attempt(() => order("DELETE", `${path}/${part(one.id)}`), one.isToken ? "The token is removed."
            : "The session has ended.", button);
        await learn();
    };
    learn();
    return h("section.card.sessions", { "aria-label": `Sessions of ${name}` },
        h("div.row", null, h("h2.grow", null, "Sessions and tokens of ", named(name)),
            h("button.quiet", { type: "button", onclick: close }, "Close")),
        h("p.problem", { role: "alert" }, () => problem.value),
        h("p.muted", { hidden: () => sessions.value?.length !== 0 }, "There are none."),
        h("div.table-box", { hidden: () => !sessions.value?.length }, h("table.cards",
            { role: "table", "aria-label": `Sessions and tokens of ${name}` },
            h("thead", { role: "rowgroup" }, h("tr", { role: "row" }, ["What", "Good until", ""].map((title) =>
                h("th", { role: "columnheader", scope: "col" }, title)))),
            list(h("tbody", { role: "rowgroup" }), () => sessions.value ?? [], (one) => one.id, (one) => h("tr", { role: "row" },
                h("th", { role: "rowheader", scope: "row", "data-label": "What" },
                    one.peek().isToken ? h("span", null, "Token ", named(one.peek().label)) : "Log-in", " ",
                    one.peek().isCurrent ? badge("accent", "this one") : null),
                h("td", { role: "cell", "data-label": "Good until" }, day(one.peek().expires)),
                h("td", { role: "cell" }, h("button.quiet.bad-text",
                    { type: "button", onclick: (event) => end(one.peek(), event.target) },
                    one.peek().isToken ? "Remove …" : "End …")))))));
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
