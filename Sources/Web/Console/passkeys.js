// Passkeys of accounts: what lets clients announce where the trackers are private.

import { get, order, part } from "./api.js";
import { ask, attempt } from "./dialog.js";
import { h, list, named } from "./dom.js";
import { signal } from "./signals.js";
import { state } from "./stream.js";
import { copyButton } from "./widgets.js";

const path = (name) => `users/${part(name)}/passkey`;

/** Whether passkeys matter now, in words. */
export function accessWords() {
    const mode = state.value?.status.node.accessMode;
    if (!mode) return "";
    return mode === "private"
        ? "The trackers are private: a client is let in with a passkey only, of a user here or of a tracker’s file."
        : `The trackers’ access mode is “${mode}”: passkeys matter where it is “private” (access.mode).`;
}

/** Gives a user another passkey; asks first where there is one. Returns the new one, or null. */
export async function renew(name, hasOne, button) {
    const isSure = !hasOne || await ask({ title: "Renew the passkey?", action: "Renew", isGrave: true, text: [
        h("span", null, "Of ", named(name), "."),
        "Running clients are not let in any more, until their torrents have the new announce URL."] });
    let made = null;
    if (isSure) await attempt(async () => (made = await order("PUT", path(name))), "There is a new passkey.", button);
    return made;
}

/** Takes a user's passkey away, having asked. Returns whether that was done. */
export async function takeAway(name, button) {
    const isSure = await ask({ title: "Take the passkey away?", action: "Take it away", isGrave: true,
        text: h("span", null, "Clients with the passkey of ", named(name), " are not let in any more.") });
    return Boolean(isSure) && attempt(() => order("DELETE", path(name)), "The passkey is taken away.", button);
}

/** Shows the passkey of whoever is logged in, and announce URLs to copy. */
export function ownPasskey(name, changed) {
    const known = signal(null);
    const problem = signal("");
    const learn = async () => {
        try {
            [known.value, problem.value] = [await get(path(name)), ""];
        } catch (refusal) {
            // 404: there is none, or nobody of this name.
            [known.value, problem.value] = [null, refusal.status === 404 ? "" : refusal.message];
        }
    };
    learn();
    const renewed = async (event) => {
        const made = await renew(name, known.peek() !== null, event.target);
        if (made) [known.value] = [made];
        changed();
    };
    const removed = async (event) => {
        if (await takeAway(name, event.target)) known.value = null;
        changed();
    };
    return h("section.card", { id: "own-passkey" }, h("h2", null, "Your passkey"),
        h("p.problem", { role: "alert" }, () => problem.value),
        h("p", { hidden: () => known.value !== null }, "You have none."),
        h("div", { hidden: () => known.value === null },
            h("p", null, h("code", null, () => known.value?.passkey ?? ""), " ",
                copyButton(() => known.peek()?.passkey ?? "", "Passkey")),
            list(h("ul", null), () => known.value?.announce ?? [], (url) => url, (url) => h("li", null,
                h("code", null, () => url.value), " ", copyButton(() => url.peek(), "Announce URL")))),
        h("p.muted", null, "Nobody else should see it: whoever has it announces in your name. Admins see it, too."),
        h("div.row", null,
            h("button.primary", { type: "button", id: "renew-passkey", onclick: renewed },
                () => (known.value ? "Renew …" : "Make one")),
            h("button.quiet.bad-text", { type: "button", hidden: () => known.value === null, onclick: removed },
                "Take it away …")));
}
