// The page's start: the frame around the pages, which page is shown, the keys that work everywhere.

import { mustLogIn, nameServer } from "/console/api.js";
import { byId, h, list } from "/console/dom.js";
import { span } from "/console/format.js";
import { listenToKeys, openPage, readyFrame, showKeys, theme, turnTheme } from "/console/frame.js";
import { go, href, look, route } from "/console/route.js";
import { computed, effect } from "/console/signals.js";
import { icon } from "/console/widgets.js";
import { followAddress, listenForDrops, openAdd } from "./peer-add.js";
import { createPage } from "./peer-create.js";
import { settingsPage } from "./peer-settings.js";
import { age, connect, link, settings, totals, transfers } from "./peer-stream.js";
import { readyToken, tokenPage } from "./peer-token.js";
import { transferPage } from "./peer-transfer.js";
import { transfersPage } from "./peer-transfers.js";
import { rate } from "./peer-words.js";

const pages = [
    { name: "transfers", title: "Transfers", make: (hash) => (hash ? transferPage(hash) : transfersPage()) },
    { name: "create", title: "Create", make: createPage },
    { name: "settings", title: "Settings", make: settingsPage },
];

const where = computed(() => route.value.path.join("/"));
const current = computed(() => pages.find((page) => page.name === (route.value.path[0] ?? "transfers")) ?? null);

// MARK: The frame

function frame() {
    effect(() => (byId("nav").hidden = mustLogIn.value));
    byId("nav").append(list(h("ul", null), () => pages, (page) => page.name, (page, name) =>
        h("li", null, h("a", { href: href([name]), "aria-current": () => (current.value?.name === name ? "page" : null) },
            icon(name), page.peek().title, h("kbd", { "aria-hidden": "true" }, pages.indexOf(page.peek()) + 1)))));
    byId("place").append(h("span", { title: () => settings.value?.directory ?? null },
        () => (settings.value?.directory ?? "").split("/").filter(Boolean).at(-1) ?? ""));
    byId("short-link").append(h("span.link.narrow", { "data-phase": () => link.value.phase },
        h("span.dot", { "aria-hidden": "true" }),
        h("span", null, () => (link.value.phase === "live" ? "" : connectionWords()))));
    byId("foot").append(
        h("p.speeds", { hidden: () => totals.value === null || link.value.phase !== "live" }, h("span", null, () => `↓ ${rate(totals.value?.downRate)}`),
            h("span", null, () => `↑ ${rate(totals.value?.upRate)}`)),
        h("div.link", { "data-phase": () => link.value.phase },
            h("span.dot", { "aria-hidden": "true" }), h("span", { id: "connection" }, connectionWords)),
        h("div.row", null,
            h("button.quiet", { type: "button", onclick: turnTheme, id: "theme" }, () => `Theme: ${theme.value}`),
            h("button.quiet", { type: "button", onclick: help, "aria-label": "Keys" }, "?")));
    readyFrame();
    byId("page").before(
        h("p.old-note", { id: "age", hidden: () => age.value === 0 }, () => `As of ${span(age.value)} ago. `,
            () => (link.value.phase === "paused" ? "" : "The connection is lost; it is tried again.")),
        h("div.unseen", { id: "voice", "aria-live": "polite" },
            () => (link.value.phase === "lost" ? "The connection to the peer is lost." : "")));
    effect(() => document.body.classList.toggle("old", age.value > 0));
    effect(() => {
        const color = link.value.phase === "live" ? "0f766e" : "c0392b";
        byId("icon").href = byId("icon").href.replace(/fill='%23[0-9a-f]{6}'/, `fill='%23${color}'`);
    });
}

function connectionWords() {
    const words = { starting: "Connecting …", live: "Live", paused: "Paused", login: "Not let in" };
    return words[link.value.phase] ?? (age.value ? `Lost ${span(age.value)} ago` : "No connection");
}

// MARK: Pages

let opened = null;

function openPages() {
    effect(() => {
        const [, hash] = route.value.path;
        const page = current.value;
        const isReady = transfers.value !== null;
        const key = mustLogIn.value ? "login" : isReady ? where.value || "transfers" : "waiting";
        if (key === opened) return;
        opened = key;
        openPage(mustLogIn.value ? tokenPage : !isReady ? waitingPage : page ? () => page.make(hash) : missingPage,
            key === "waiting");
    });
    effect(() => {
        const mark = link.value.phase === "lost" ? "✕ " : "";
        const [down, up] = [totals.value?.downRate, totals.value?.upRate];
        const moving = `${down > 0 ? `↓ ${rate(down)} ` : ""}${up > 0 ? `↑ ${rate(up)} ` : ""}`;
        const name = route.value.path[1] && transfers.value?.get(route.value.path[1])?.name;
        const title = name ? name.slice(0, 80) : current.value?.title ?? "Swarmkeeper";
        document.title = `${mark}${moving}${moving ? "· " : ""}${title} · Swarmkeeper peer`;
    });
}

const waitingPage = () => h("div.waiting", null, h("h1", { tabindex: "-1" }, "Swarmkeeper"),
    h("p.muted", null, () => (link.value.phase === "lost" ? "The peer does not answer; it is asked again."
        : "Connecting …")));

const missingPage = () => h("div", null, h("h1", { tabindex: "-1" }, "No such page"),
    h("p", null, "There is no page of that name. ", h("a", { href: "#/transfers" }, "Transfers")));

// MARK: Keys

const help = () => showKeys([
    ["1 2 3", "the pages, in the order of the menu"], ["A", "add a transfer"],
    ["/", "search, where there is a search field"],
    ["↑ ↓", "rows of the list, once one has the focus; Page Up, Page Down and Home, too"],
    ["X", "choose the transfer that has the focus, or let go of it"],
    ["← →", "on the chart: the time that the legend tells; on the pieces: which one is told"],
    ["T", "theme: system, light, dark"], ["?", "these keys"], ["Esc", "close, or let go of what is selected"],
]);

readyToken();
nameServer("the peer");
frame();
openPages();
listenForDrops();
followAddress(route, look);
listenToKeys((number) => {
    const page = pages[number - 1];
    if (page) go([page.name]);
    return page;
}, { "?": help, a: () => !mustLogIn.peek() && openAdd(), A: () => !mustLogIn.peek() && openAdd() });
connect();
