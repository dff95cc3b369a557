// The console's start: the frame around the pages, which page is shown, the keys that work everywhere.

import { has, mustLogIn, order } from "./api.js";
import { attempt } from "./dialog.js";
import { byId, h, list } from "./dom.js";
import { span } from "./format.js";
import { listenToKeys, openPage, readyFrame, showKeys, theme, turnTheme } from "./frame.js";
import { consoles, watch } from "./moving.js";
import { go, href, route } from "./route.js";
import { sentence } from "./sentence.js";
import { computed, effect } from "./signals.js";
import { age, connect, link, state, transitionCount, transitions } from "./stream.js";
import { icon } from "./widgets.js";
import { loginPage } from "./login.js";
import { overviewPage } from "./overview.js";
import { peersPage } from "./peers.js";
import { settingsPage } from "./settings.js";
import { swarmsPage } from "./swarms.js";
import { timelinePage } from "./timeline.js";
import { torrentPage, torrentsPage } from "./torrents.js";
import { trackersPage } from "./trackers.js";
import { usersPage } from "./users.js";

/** The pages in the order of their keys; `needs` is the part of the API without which there is none. */
const pages = [
    { name: "overview", title: "Overview", make: overviewPage },
    { name: "trackers", title: "Trackers", make: trackersPage },
    { name: "swarms", title: "Swarms", make: (hash) => (hash ? peersPage(hash) : swarmsPage()), needs: "swarms" },
    { name: "timeline", title: "Timeline", make: timelinePage, needs: "events" },
    { name: "torrents", title: "Torrents", make: (hash) => (hash ? torrentPage(hash) : torrentsPage()),
        needs: "torrents" },
    { name: "users", title: "Users", make: usersPage, needs: "users" },
    { name: "settings", title: "Settings", make: settingsPage, needs: "settings" },
];

const shown = computed(() => pages.filter((page) => !page.needs || has(page.needs)));
const where = computed(() => route.value.path.join("/"));
const current = computed(() => pages.find((page) => page.name === (route.value.path[0] ?? "overview")) ?? null);
const said = computed(() => {
    transitionCount.value;
    return state.value ? sentence(state.value, transitions()) : null;
});

// MARK: The frame

function frame() {
    effect(() => (byId("nav").hidden = mustLogIn.value));
    byId("nav").append(list(h("ul", null), () => shown.value, (page) => page.name, (page, name) =>
        h("li", null, h("a", { href: href([name]),
            "aria-current": () => (current.value?.name === name ? "page" : null) },
            icon(name), page.peek().title, h("kbd", { "aria-hidden": "true" },
                () => shown.value.indexOf(page.value) + 1)))),
    // A document of its own, with a policy of its own (docs/playground.md).
    h("ul", null, h("li", null, h("a", { href: "/simulator/" }, icon("simulator"), "Simulator"))));
    byId("place").append(h("span", null, () => state.value?.name ?? ""));
    byId("short-link").append(h("span.link.narrow", { "data-phase": () => link.value.phase },
        h("span.dot", { "aria-hidden": "true" }),
            h("span", null, () => (link.value.phase === "live" ? "" : connectionWords()))));
    byId("foot").append(
        h("div.link", { "data-phase": () => link.value.phase },
            h("span.dot", { "aria-hidden": "true" }), h("span", { id: "connection" }, connectionWords)),
        h("div.consoles", { hidden: () => consoles.value.length === 0 }, h("span.muted", null, "Console of"),
            list(h("span.row", null), () => consoles.value, (one) => one.id,
            (one, id) => consoleLink(one, id))),
        h("div.row", null,
            h("button.quiet", { type: "button", onclick: turnTheme, id: "theme" }, () => `Theme: ${theme.value}`),
            h("button.quiet", { type: "button", onclick: help, "aria-label": "Keys" }, "?")),
        h("div.row", { hidden: () => mustLogIn.value || !state.value?.login?.user },
            h("span", null, () => state.value?.login?.user?.name ?? "", " ",
                h("span.muted", null, () => state.value?.login?.user?.role ?? "")),
            h("button.quiet", { type: "button", onclick: logOut }, "Log out")));
    readyFrame();
    byId("page").before(
        h("p.old-note", { id: "age", hidden: () => age.value === 0 }, () => `As of ${span(age.value)} ago. `,
            () => (link.value.phase === "paused" ? "" : "The connection is lost; it is tried again.")),
        h("div.unseen", { id: "voice", "aria-live": "polite" }, voice));
    effect(() => document.body.classList.toggle("old", age.value > 0));
    effect(() => {
        const tone = link.value.phase === "live" ? said.value?.tone : "bad";
        const color = { good: "0f766e", warn: "b7791f", bad: "c0392b" }[tone] ?? "777777";
        byId("icon").href = byId("icon").href.replace(/%23[0-9a-f]{6}/, `%23${color}`);
    });
}

function consoleLink(one, id) {
    return h("span", null, () => {
        if (one.value.isThis) return h("b", { "aria-current": "true" }, `tracker ${id}`);
        if (!one.value.origin) return h("span.muted", { title: "Its console cannot be reached from here." },
            String(id));
        return h("a", { href: () => `${one.value.origin}/${where.value ? location.hash : ""}`,
            title: `The same page at tracker ${id}’s console` }, String(id));
    });
}

function connectionWords() {
    const words = { starting: "Connecting …", live: "Live", paused: "Paused", login: "Not logged in" };
    return words[link.value.phase] ?? (age.value ? `Lost ${span(age.value)} ago` : "No connection");
}

/** What a screen reader says by itself: the connection and the sentence, when they become others. */
function voice() {
    const connection = { live: "", starting: "", paused: "", login: "",
        lost: "The connection to the tracker is lost. " };
    return connection[link.value.phase] + (mustLogIn.value ? "" : said.value?.text ?? "");
}

async function logOut() {
    // Where the tracker shows itself to nobody in particular, it does so again; else it asks who is there.
    if (await attempt(() => order("DELETE", "sessions/current"))) connect();
}

// MARK: Pages

function openPages() {
    // As one would write the simulator's address by hand: `/#sim?profile=paxos&seed=17`.
    effect(() => {
        if (["sim", "simulator"].includes(route.value.path[0])) location.replace(`/simulator/${location.hash}`);
    });
    effect(() => {
        const [, ...rest] = where.value.split("/");
        const page = current.value;
        const isLogin = mustLogIn.value || route.value.path[0] === "login";
        const isReady = isLogin || state.value !== null;
        const isThere = isLogin || (page && shown.value.includes(page));
        const key = isLogin ? "login" : isReady ? `${isThere} ${where.value}` : "waiting";
        if (key === opened) return;
        opened = key;
        openPage(isLogin ? loginPage : !isReady ? waitingPage : isThere ? () => page.make(rest[0]) : missingPage,
            key === "waiting");
    });
    effect(() => {
        const mark = link.value.phase === "lost" ? "✕ " : said.value?.tone === "bad" ? "! " : "";
        const tracker = state.value ? ` · tracker ${state.value.status.node.id}` : "";
        document.title = `${mark}${current.value?.title ?? "Swarmkeeper"} · ${state.value?.name ?? "Swarmkeeper"}${tracker}`;
    });
}

let opened = null;

const waitingPage = () => h("div.waiting", null, h("h1", { tabindex: "-1" }, "Swarmkeeper"),
    h("p.muted", null, () => (link.value.phase === "lost" ? "The tracker does not answer; it is asked again."
        : "Connecting …")));

const missingPage = () => h("div", null, h("h1", { tabindex: "-1" }, "No such page"),
    h("p", null, "This tracker has no page of that name. ", h("a", { href: "#/" }, "Overview")));

// MARK: Keys

const keyHelp = [
    ["1 … 7", "the pages, in the order of the menu"], ["/", "search, where there is a search field"],
    ["T", "theme: system, light, dark"], ["?", "these keys"], ["Esc", "close, or let go of what is selected"],
    ["↑ ↓", "rows of a table, once one has the focus; Page Up, Page Down and Home, too"],
    ["← →", "on a chart: the time that the legend tells; on the timeline: earlier, later"],
    ["+ −", "on the timeline: closer, farther"], ["Home End", "on the timeline: the oldest, now"],
    ["N P", "on the timeline: the next transition, the one before"],
];

const help = () => showKeys(keyHelp);

frame();
openPages();
listenToKeys((number) => {
    const page = shown.peek()[number - 1];
    if (page) go([page.name]);
    return page;
}, { "?": help });
watch();
connect();
