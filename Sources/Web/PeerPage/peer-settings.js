// Settings: the limits of all transfers together, where the peer listens and keeps its files, this browser's part.

import { isTokenShown } from "/console/api.js";
import { tell } from "/console/dialog.js";
import { h, list, named } from "/console/dom.js";
import { bytes, count } from "/console/format.js";
import { theme, turnTheme } from "/console/frame.js";
import { badge, heading } from "/console/widgets.js";
import { globalLimits } from "./peer-limits.js";
import { settings, totals } from "./peer-stream.js";
import { forgetToken } from "./peer-token.js";

const pair = (name, value) => h("div", null, h("dt", null, name), h("dd", null, value));

export function settingsPage() {
    const told = () => settings.value ?? {};
    return h("div", null,
        heading("Settings"),
        h("div.columns", null,
            h("section.card", null, h("h2", null, "Limits of all transfers"), globalLimits()),
            h("section.card", null, h("h2", null, "This peer"), h("dl.pairs", null,
                pair("Directory", h("code", null, () => named(told().directory ?? ""))),
                pair("Listens at", list(h("span.addresses", null), () => told().listen ?? [], (one) => one,
                    (one, address) => h("code", null, named(address)))),
                pair("Local discovery", () => (told().localDiscovery ? badge("good", "on") : badge("plain", "off"))),
                pair("Transfers", () => `${count(totals.value?.transfers)}, ${count(totals.value?.active)} of them active`),
                pair("Received, sent", () => `${bytes(totals.value?.received)}, ${bytes(totals.value?.sent)}`),
                pair("Version", () => named(told().version ?? ""))),
            h("p.muted", null, "Where it listens and keeps its files is said when it is started: ",
                h("code", null, "tracker peer --help"), " tells how.")),
            h("section.card", null, h("h2", null, "This browser"),
                h("div.row", null, h("button", { type: "button", onclick: turnTheme }, () => `Theme: ${theme.value}`),
                    h("button", { type: "button", onclick: takeMagnets }, "Open magnet links here"),
                    h("button", { type: "button", hidden: !isTokenShown(), onclick: forgetToken }, "Forget the token")),
                h("p.muted", null, "With magnet links opened here, a click on one on any page asks here whether to add it."))));
}

function takeMagnets() {
    try {
        navigator.registerProtocolHandler("magnet", `${location.origin}/#/transfers?magnet=%s`);
        tell("The browser asks whether this page may open magnet links.");
    } catch {
        tell("This browser does not let pages open magnet links, or only over https or on this machine.", "warn");
    }
}
