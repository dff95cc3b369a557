// Create: make a torrent of a file or a folder, publish it at a console, seed it; how far that is, and what came of it.

import { order, part } from "/console/api.js";
import { attempt } from "/console/dialog.js";
import { h, list, named } from "/console/dom.js";
import { bytes, nothing, span } from "/console/format.js";
import { stored } from "/console/frame.js";
import { href } from "/console/route.js";
import { computed, signal } from "/console/signals.js";
import { badge, copyButton, heading } from "/console/widgets.js";
import { torrentLink } from "./peer-actions.js";
import { folderList, take, taken } from "./peer-folders.js";
import { creations, settings } from "./peer-stream.js";
import { percent, rate } from "./peer-words.js";

const pieceSizes = Array.from({ length: 16 }, (_, at) => 2 ** (14 + at));
const schemes = /^(udp|https?):\/\/[^\s/]+/i;

/** Tiers of lines: an empty line ends a tier. Throws a sentence that names the line. */
export function tiersOf(text) {
    const tiers = [[]];
    text.split(/\r?\n/).forEach((line, at) => {
        const url = line.trim();
        if (!url) return void (tiers.at(-1).length && tiers.push([]));
        if (!schemes.test(url)) {
            throw new Error(`Line ${at + 1} is no address of a tracker: it begins with udp:// or http://`);
        }
        tiers.at(-1).push(url);
    });
    return tiers.filter((tier) => tier.length);
}

function seedsOf(text) {
    return text.split(/\r?\n/).map((line) => line.trim()).filter(Boolean).map((url, at) => {
        if (!/^https?:\/\//i.test(url)) {
            throw new Error(`Line ${at + 1} is no address of a web server: it begins with http://`);
        }
        return url;
    });
}

export function createPage() {
    return h("div", null,
        heading("Create a torrent"),
        running(),
        form());
}

// MARK: The form

function form() {
    const problems = signal({});
    const isPublished = signal(stored("peer-publish") === "yes");
    const area = (id, label, about, rows, value) => h("label.field", null, h("span", null, label),
        h("textarea", { id, rows, spellcheck: "false", autocomplete: "off", wrap: "off", value: value ?? "",
            "aria-describedby": `${id}-about ${id}-problem`,
            "aria-invalid": () => (problems.value[id] ? "true" : null) }),
        h("span.sub", { id: `${id}-about` }, about),
        h("span.problem", { id: `${id}-problem`, role: "alert" }, () => problems.value[id] ?? ""));
    const check = (id, text, isOn, onchange) => h("label.check", null,
        h("input", { type: "checkbox", id, checked: isOn, ...(onchange ? { onchange } : {}) }), h("span", null, text));
    const trackers = area("create-trackers", "Trackers", "One address a line. An empty line begins the next tier, which is "
        + "asked only where the one before is silent.", "4", stored("peer-trackers"));
    const seeds = area("create-seeds", "Web seeds", "Mirrors of the data over HTTP, one address a line.", "2", "");
    const size = h("select", { id: "create-size" }, h("option", { value: "" }, "chosen by the size of the data"),
        pieceSizes.map((one) => h("option", { value: String(one) }, bytes(one))));
    const comment = h("input", { type: "text", id: "create-comment", maxlength: "1000", autocomplete: "off" });
    const consoleField = h("input", { type: "url", id: "create-console", placeholder: "http://127.0.0.1:6970",
        value: stored("peer-console") ?? "", autocomplete: "off", spellcheck: "false" });
    const token = h("input", { type: "password", id: "create-token", autocomplete: "off",
        placeholder: "where the console asks for one" });
    const button = h("button.primary", { id: "create-go" }, "Create");
    const box = h("form", { id: "create", novalidate: true, onsubmit: async (event) => {
        event.preventDefault();
        const text = (id) => box.querySelector(`#${id}`).value;
        const body = bodyOf(text, problems, {
            isPublished: isPublished.peek(), isPrivate: box.querySelector("#create-private").checked,
            seed: box.querySelector("#create-seed").checked,
        });
        if (!body) return void box.querySelector("[aria-invalid]")?.focus();
        stored("peer-trackers", text("create-trackers"));
        stored("peer-console", text("create-console"));
        stored("peer-publish", isPublished.peek() ? "yes" : "no");
        const isBegun = await attempt(async () => {
            const told = await order("POST", "creations", body);
            if (!creations.peek().some((one) => one.id === told.id)) creations.value = [told, ...creations.peek()];
        }, null, button);
        if (isBegun) take(null);
        if (isBegun) document.getElementById("creations")?.scrollIntoView({ block: "nearest" });
    } },
        h("section.card", null, h("h2", null, "What is shared"),
            h("p.muted", null, "A file or a folder in ", h("code", null, () => named(settings.value?.directory ?? "")),
                " on the peer’s machine. Everything in a folder is shared."),
            folderList(),
            h("p.taken-line", { id: "create-what", role: "status", "aria-live": "polite" }, () => (taken() === null
                ? h("span.muted", null, "Nothing is chosen yet.") : [h("b", null, "Shares "), named(taken(), 300)])),
            h("p.problem", { role: "alert" }, () => problems.value.path ?? "")),
        h("div.columns", null,
            h("section.card", null, h("h2", null, "Where peers find each other"), trackers, seeds,
                check("create-private", "Private: peers come from the trackers only", false)),
            h("section.card", null, h("h2", null, "Afterwards"),
                check("create-seed", "Seed it", true),
                check("create-publish", "Publish it at a tracker’s console", isPublished.peek(),
                    (event) => (isPublished.value = event.target.checked)),
                h("div.publish", { hidden: () => !isPublished.value },
                    h("label.field", null, h("span", null, "Console"), consoleField,
                        h("span.problem", { role: "alert" }, () => problems.value["create-console"] ?? "")),
                    h("label.field", null, h("span", null, "Token"), token)),
                h("label.field", null, h("span", null, "Piece size"), size),
                h("label.field", null, h("span", null, "Comment"), comment))),
        h("div.row", null, button));
    return box;
}

/** What the form says, for the API; null where it makes no sense, with why beside the fields. */
function bodyOf(text, problems, { isPublished, isPrivate, seed }) {
    const found = {};
    const read = (id, make) => {
        try {
            return make(text(id));
        } catch (problem) {
            found[id] = problem.message;
            return null;
        }
    };
    const trackers = read("create-trackers", tiersOf);
    const webSeeds = read("create-seeds", seedsOf);
    const at = text("create-console").trim();
    if (taken() === null) found.path = "Choose a file or a folder first.";
    if (isPublished && !/^https?:\/\/[^\s/]+/i.test(at)) {
        found["create-console"] = "The console’s address begins with http:// or https://";
    }
    problems.value = found;
    if (Object.keys(found).length) return null;
    const size = text("create-size");
    return {
        path: taken(), trackers, webSeeds, pieceLength: size ? Number(size) : null, private: isPrivate,
        comment: text("create-comment"), seed,
        publish: isPublished ? { console: at.replace(/\/+$/, ""), token: text("create-token") || null } : null,
    };
}

// MARK: Those that run, and the last that ran

const stateWords = { hashing: "Hashing", publishing: "Publishing", done: "Done", failed: "Failed", cancelled: "Cancelled" };
const stateTones = { hashing: "accent", publishing: "accent", done: "good", failed: "bad", cancelled: "plain" };

function running() {
    return h("section", { id: "creations", "aria-label": "Torrents that are made",
        hidden: () => creations.value.length === 0 },
        list(h("ul.creations"), () => creations.value, (one) => one.id, (one, id) => creation(one, id)));
}

function creation(one, id) {
    const is = (...states) => states.includes(one.value.state);
    const isRunning = computed(() => is("hashing", "publishing"));
    return h("li.card", { "data-state": () => one.value.state },
        h("div.heading", null,
            h("h3.grow.title", null, () => named(one.value.name || one.value.path || "", 200)),
            h("span.contents", null, () => badge(stateTones[one.value.state] ?? "plain",
                stateWords[one.value.state] ?? one.value.state)),
            h("button.quiet", { type: "button", onclick: (event) => attempt(async () => {
                await order("DELETE", `creations/${part(id)}`);
                if (!isRunning.peek()) creations.value = creations.peek().filter((other) => other.id !== id);
            }, null, event.target) }, () => (isRunning.value ? "Cancel" : "Forget"))),
        h("div.creation-progress", { hidden: () => !isRunning.value },
            h("span.bar.is-downloading", { role: "progressbar", "aria-valuemin": "0", "aria-valuemax": "100",
                "aria-valuenow": () => Math.floor((one.value.progress ?? 0) * 100), "aria-label": "Hashed" },
                h("span", { style: () => ({ width: `${Math.min(one.value.progress ?? 0, 1) * 100}%` }) })),
            h("p.muted.row", null, h("b", null, () => percent(one.value.progress)),
                h("span", null, () => `of ${bytes(one.value.byteCount)}`),
                h("span", { hidden: () => !(one.value.rate > 0) }, () => rate(one.value.rate)),
                h("span", { hidden: () => !Number.isFinite(one.value.secondsLeft) },
                    () => `${Number.isFinite(one.value.secondsLeft) ? span(one.value.secondsLeft) : nothing} left`))),
        h("p", { hidden: () => !one.value.reason, class: () => ({ problem: is("failed"), muted: !is("failed") }) },
            () => named(one.value.reason ?? "", 600)),
        h("p", { hidden: () => !one.value.published }, "Published at ", () => named(one.value.published ?? "", 300)),
        h("div.row", { hidden: () => !one.value.hash },
            h("span.contents", null, () => (one.value.magnet ? copyButton(() => one.peek().magnet, "Magnet link") : null)),
            torrentLink(`creations/${part(id)}/file`, () => one.value.name, "a.button.quiet"),
            h("a.button.quiet", { hidden: () => !one.value.isSeeding,
                href: () => href(["transfers", one.value.hash ?? ""]) }, "Its transfer")));
}
