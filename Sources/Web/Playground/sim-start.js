// The page's start: the frame around the pages, which of them is shown, the keys that work everywhere.

import { byId, h } from "./dom.js";
import { listenToKeys, openPage, readyFrame, showKeys, theme, turnTheme } from "./frame.js";
import { computed, effect } from "./signals.js";
import { model } from "./sim-model.js";
import { keyHelp, runPage } from "./sim-page.js";
import { title } from "./sim-setup.js";
import { sweepPage } from "./sim-sweep.js";
import { walkPage } from "./sim-walk.js";
import { sweepCommand } from "./sim-words.js";
import { route } from "./route.js";
import { copyButton } from "./widgets.js";

const m = model();

const pages = [
    { name: "run", title: "Run", address: () => m.address(), make: () => runPage(m) },
    { name: "sweep", title: "Sweep", address: () => "#sweep", make: () => sweepPage(m) },
    { name: "walk", title: "Walk", address: () => "#walk", make: () => walkPage(m) },
];

/** Where the page comes from a tracker, that has a console beside it. */
const hasConsole = document.querySelector("meta[name=served-by]")?.content === "tracker";

function frame() {
    byId("nav").append(h("ul", null, pages.map((page, at) => h("li", null, h("a", {
        href: page.address(), "data-page": page.name,
        "aria-current": () => (m.mode.value === page.name ? "page" : null),
        onclick: (event) => (event.currentTarget.href = page.address()),
    }, page.title, h("kbd", { "aria-hidden": "true" }, at + 1))))));
    const back = h("a", { hidden: !hasConsole }, "Console");
    back.href = "../";
    byId("foot").append(h("div.row", null, back,
        h("button.quiet", { type: "button", onclick: turnTheme, id: "theme" }, () => `Theme: ${theme.value}`),
        h("button.quiet", { type: "button", onclick: help, "aria-label": "Keys" }, "?")));
    readyFrame();
}

function open() {
    const shown = computed(() => (m.status.value.phase === "ready" ? m.mode.value : m.status.value.phase));
    effect(() => {
        const page = pages.find((one) => one.name === shown.value);
        openPage(page ? page.make : () => waiting(m.status.peek()), !page);
        document.title = `${page?.title ?? "Simulator"} · Swarmkeeper simulator`;
    });
    effect(() => {
        const run = m.run.value;
        if (m.mode.value !== "run" || !run) return;
        document.title = `${run.info.violations.length ? "! " : ""}${title(m, run)} · Swarmkeeper simulator`;
    });
}

// MARK: Where there is no engine

const waiting = (status) => (status.phase === "loading" ? h("div.waiting", null, h("h1", { tabindex: "-1" },
    "Simulator"), h("p.muted", null, status.text)) : h("div", null, h("h1", { tabindex: "-1" }, "Simulator"),
    status.phase === "missing" ? missing() : h("p.problem", null, status.text)));

function missing() {
    const { profile, stress, seed, first, count } = route.peek().query;
    const plain = (text) => /^[\w-]+$/.test(text ?? "") ? text : null;
    const number = (text, otherwise) => (/^\d{1,18}$/.test(text ?? "") ? text : otherwise);
    const from = number(seed ?? first, "1");
    const until = seed ? from : String(BigInt(from) + BigInt(number(count, "500")) - 1n);
    const command = sweepCommand({ profile: plain(profile) ?? "paxos", stress: plain(stress) }, from, until);
    const replay = `tracker replay ${from} --profile ${plain(profile) ?? "paxos"}`
        + (plain(stress) ? ` --stress ${stress}` : "");
    return h("section.card.sim-missing", null,
        h("p", null, "The simulator’s module, ", h("code", null, "simulator.wasm"),
            ", is not where this page looks for it."),
        h("p", null, "Make it with ", h("code", null, "make wasm"), " in the sources’ folder, and start the tracker "
            + "again; or begin the tracker with ", h("code", null, "--simulator FILE"), "."),
        h("p", null, "The same in a terminal, with the same results:"),
        [command, replay].map((one) => h("p.row", null, h("code.sim-command", null, one),
            copyButton(() => one, "Command"))));
}

// MARK: Keys

const help = () => showKeys([["1 2 3", "run, sweep, walk"], ...keyHelp, ["T", "theme: system, light, dark"],
    ["?", "these keys"]]);

frame();
open();
listenToKeys((number) => {
    const page = pages[number - 1];
    if (page) location.hash = page.address();
    return page;
}, { "?": help });
m.begin();
