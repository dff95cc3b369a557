// The token that the peer asks for where others than its own machine may reach it; this tab keeps it.

import { mustLogIn, showToken } from "/console/api.js";
import { h } from "/console/dom.js";
import { signal } from "/console/signals.js";
import { connect, link } from "./peer-stream.js";

const key = "peer-token";

/** Shows the token that this tab has kept, from the start on. */
export function readyToken() {
    try {
        showToken(sessionStorage.getItem(key));
    } catch {
        showToken(null);
    }
}

function keep(token) {
    try {
        if (token) sessionStorage.setItem(key, token);
        else sessionStorage.removeItem(key);
    } catch {
        // Then it is asked for again when the page is opened again.
    }
    showToken(token);
}

export function forgetToken() {
    keep(null);
    location.reload();
}

export function tokenPage() {
    const problem = signal("");
    const field = h("input", { type: "password", id: "token", autocomplete: "current-password", required: true });
    return h("div.login", null, h("h1", { tabindex: "-1" }, "Who is there?"),
        h("p.muted", null, "This peer asks for its token: the text in the file that --console-token-file names."),
        h("form", { onsubmit: async (event) => {
            event.preventDefault();
            keep(field.value.trim());
            await connect();
            if (link.peek().phase === "login") problem.value = "The peer does not know this token.";
            else if (mustLogIn.peek()) problem.value = "The peer does not answer now; it is tried again.";
        } },
        h("label", null, h("span", null, "Token"), field),
        h("p.problem", { role: "alert" }, () => problem.value),
        h("div.row", null, h("button.primary", null, "Go on"))));
}
