// Log in: a name and a password, and on to the page that was asked for.

import { mustLogIn, order } from "./api.js";
import { h } from "./dom.js";
import { go, route } from "./route.js";
import { signal } from "./signals.js";
import { connect } from "./stream.js";

export function loginPage() {
    const problem = signal("");
    const button = h("button.primary", null, "Log in");
    const name = h("input", { name: "name", autocomplete: "username", autocapitalize: "none", spellcheck: "false",
        required: true });
    const password = h("input", { name: "password", type: "password", autocomplete: "current-password",
        required: true });
    const form = h("form.card.login", {
        onsubmit: async (event) => {
            event.preventDefault();
            button.disabled = true;
            problem.value = "";
            try {
                await order("POST", "sessions", { name: name.value, password: password.value });
                mustLogIn.value = false;
                if (route.peek().path[0] === "login") go([]);
                await connect();
            } catch (refusal) {
                problem.value = refusal.message;
                password.value = "";
                password.focus();
            } finally {
                button.disabled = false;
            }
        },
    },
    h("h1", { tabindex: "-1" }, "Log in"),
    h("p.muted", null, "This tracker’s console asks who you are."),
    h("label", null, h("span", null, "Name"), name),
    h("label", null, h("span", null, "Password"), password),
    h("p.problem", { role: "alert" }, () => problem.value),
    h("div.row.end", null, button));
    queueMicrotask(() => name.focus());
    return form;
}
