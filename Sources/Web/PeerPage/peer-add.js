// Adding transfers: torrent files that are dropped or chosen, magnet links that are pasted or typed, where they are put.

import { get, largestTorrentFile, order, upload } from "/console/api.js";
import { tell } from "/console/dialog.js";
import { h, list, listen, named } from "/console/dom.js";
import { bytes, counted } from "/console/format.js";
import { href } from "/console/route.js";
import { effect, scope, signal } from "/console/signals.js";
import { nameOf } from "/console/widgets.js";
import { learn, settings, transfers } from "./peer-stream.js";

/** A magnet link of what was typed: a link, or a bare info hash. Null for anything else. */
export function magnetOf(text) {
    if (/^magnet:\?/i.test(text)) return text;
    if (/^[0-9a-f]{40}$/i.test(text) || /^[a-z2-7]{32}$/i.test(text)) return `magnet:?xt=urn:btih:${text}`;
    return /^1220[0-9a-f]{64}$/i.test(text) ? `magnet:?xt=urn:btmh:${text}` : null;
}

const whyNot = (line) => (/^https?:/i.test(line)
    ? "is the address of a page or a file: save the .torrent file, and drop it here" : "is no magnet link and no info hash");

let isOpen = false;
/** What is dropped or pasted while the question is open goes into it. */
let takeFiles = null;
let takeText = null;

/** Opens the question; files and links may be there already. */
export function openAdd({ files = [], text = "" } = {}) {
    if (isOpen) {
        takeFiles(files);
        takeText(text);
        return;
    }
    if (document.querySelector("dialog[open]")) return;
    const [box, end] = scope(() => dialog(files, text));
    isOpen = true;
    box.addEventListener("close", () => {
        isOpen = false;
        end();
        box.remove();
    });
    document.body.append(box);
    box.showModal();
    (files.length || text ? box.querySelector("button.primary") : box.querySelector("textarea")).focus();
}

function dialog(files, text) {
    const chosen = signal([]);
    const failures = signal([]);
    const isBusy = signal(false);
    let last = 0;
    const links = h("textarea", { id: "add-links", rows: "3", spellcheck: "false", autocomplete: "off", wrap: "off",
        placeholder: "magnet:?xt=urn:btih:…", value: text });
    takeText = (more) => {
        if (more) links.value = [links.value.trim(), more].filter(Boolean).join("\n");
    };
    takeFiles = (more) => {
        const fresh = [...more].filter((one) => !chosen.peek().some((other) =>
            other.file.name === one.name && other.file.size === one.size));
        chosen.value = [...chosen.peek(), ...fresh.map((one) => ({ id: (last += 1), file: one }))];
    };
    takeFiles(files);
    const picker = h("input", { type: "file", id: "add-files", accept: ".torrent,application/x-bittorrent",
        multiple: true, onchange: () => {
            takeFiles(picker.files);
            picker.value = "";
        } });
    const place = h("input", { type: "text", id: "add-directory", list: "add-folders", autocomplete: "off",
        spellcheck: "false", placeholder: "the folder itself", maxlength: "1000" });
    const isPaused = h("input", { type: "checkbox", id: "add-paused" });
    const submit = async (event) => {
        event.preventDefault();
        if (isBusy.peek()) return;
        isBusy.value = true;
        await addAll(box, { chosen, links, failures, directory: place.value.trim(), isPaused: isPaused.checked });
        isBusy.value = false;
    };
    // In a field of several lines, Enter begins a line.
    const hurry = (event) => event.key === "Enter" && (event.ctrlKey || event.metaKey) && submit(event);
    const form = h("form", { onsubmit: submit, onkeydown: hurry },
        h("h2", { id: "add-title" }, "Add transfers"),
        h("label", null, h("span", null, "Magnet links or info hashes, one a line"), links),
        h("div.drop", null, h("label.row", null, h("span", null, "Torrent files: drop them here, or choose"), picker),
            list(h("ul.plain.chosen-files", null), () => chosen.value, (one) => one.id, (one, id) => h("li.row", null,
                h("span.grow", null, named(one.peek().file.name)), h("span.muted", null, bytes(one.peek().file.size)),
                h("button.quiet", { type: "button", "aria-label": `Leave out ${one.peek().file.name}`,
                    onclick: () => (chosen.value = chosen.peek().filter((other) => other.id !== id)) }, "✕")))),
        h("label", null, h("span", null, "Put into a folder of ",
            h("code", null, () => named(settings.value?.directory ?? "the peer’s directory"))), place),
        folders(place),
        h("label.check", null, isPaused, h("span", null, "Begin paused")),
        list(h("ul.plain.problem", { role: "alert" }), () => failures.value.map((one, at) => ({ ...one, at })),
            (one) => `${one.at} ${one.why}`, (one) => h("li", null, named(one.peek().what, 80), " ",
                named(one.peek().why))),
        h("div.row.end", null,
            h("button.quiet", { type: "button", onclick: () => box.close() }, "Cancel"),
            h("button.primary", { disabled: () => isBusy.value }, () => (isBusy.value ? "Adding …" : "Add"))));
    const box = h("dialog.wide-box", { "aria-labelledby": "add-title" }, form);
    return box;
}

/** Suggestions: the folders within what is typed so far. */
function folders(field) {
    const names = signal([]);
    let asked = null;
    const learnFolders = async () => {
        const path = field.value.includes("/") ? field.value.slice(0, field.value.lastIndexOf("/")) : "";
        if (path === asked) return;
        asked = path;
        try {
            const told = await get("folders", { path });
            names.value = told.entries.filter((one) => one.isFolder)
                .map((one) => (path ? `${path}/${one.name}` : one.name)).slice(0, 200);
        } catch {
            names.value = [];
        }
    };
    listen(field, "input", learnFolders);
    listen(field, "focus", learnFolders);
    return list(h("datalist", { id: "add-folders" }), () => names.value, (one) => one,
        (one, name) => h("option", { value: name }));
}

/** Adds all that is there; what fails stays, with why. */
async function addAll(box, { chosen, links, failures, directory, isPaused }) {
    const lines = links.value.split(/\s+/).filter(Boolean);
    if (!lines.length && !chosen.peek().length) {
        failures.value = [{ what: "Nothing is chosen:", why: "paste a magnet link, or choose a torrent file" }];
        return;
    }
    const failed = [];
    const left = [];
    const added = [];
    const note = (transfer, wasThere) => {
        learn(transfer);
        added.push({ transfer, wasThere });
    };
    const known = new Set(transfers.peek()?.keys() ?? []);
    for (const line of lines) {
        const magnet = magnetOf(line);
        try {
            if (!magnet) throw new Error(whyNot(line));
            const body = { magnet, paused: isPaused, ...(directory ? { directory } : {}) };
            const told = await order("POST", "transfers", body);
            note(told, known.has(told?.hash));
        } catch (refusal) {
            failed.push({ what: line, why: refusal.message });
            left.push(line);
        }
    }
    const query = new URLSearchParams({ ...(isPaused ? { paused: "true" } : {}), ...(directory ? { directory } : {}) });
    for (const one of chosen.peek()) {
        try {
            if (one.file.size > largestTorrentFile()) {
                throw new Error(`has ${bytes(one.file.size)}: a torrent file has ${bytes(largestTorrentFile())} at most`);
            }
            const told = await upload(`transfers${query.size ? `?${query}` : ""}`, one.file, () => {});
            note(told, known.has(told?.hash));
            chosen.value = chosen.peek().filter((other) => other !== one);
        } catch (refusal) {
            failed.push({ what: one.file.name, why: refusal.message });
        }
    }
    links.value = left.join("\n");
    failures.value = failed;
    tellAdded(added);
    if (!failed.length) box.close();
}

function tellAdded(added) {
    const fresh = added.filter((one) => !one.wasThere);
    const link = ({ transfer }) => h("a", { href: href(["transfers", transfer.hash]) }, nameOf(transfer.name));
    if (fresh.length === 1) tell(h("span", null, link(fresh[0]), " is added."));
    else if (fresh.length) tell(`${counted(fresh.length, "transfer")} added.`);
    for (const one of added.filter((other) => other.wasThere).slice(0, 5)) {
        tell(h("span", null, link(one), " was there already; nothing has changed."), "warn");
    }
}

/** Takes what is dropped or pasted anywhere on the page. */
export function listenForDrops() {
    const isOfUse = (event) => [...(event.dataTransfer?.types ?? [])].some((type) =>
        type === "Files" || type === "text/uri-list" || type === "text/plain");
    let depth = 0;
    const show = (isOver) => document.body.classList.toggle("dropping", isOver);
    addEventListener("dragenter", (event) => {
        if (isOfUse(event)) show((depth += 1) > 0);
    });
    addEventListener("dragleave", () => {
        depth = Math.max(depth - 1, 0);
        show(depth > 0);
    });
    addEventListener("dragover", (event) => isOfUse(event) && event.preventDefault());
    addEventListener("drop", (event) => {
        depth = 0;
        show(false);
        if (!isOfUse(event)) return;
        const files = [...event.dataTransfer.files];
        const text = event.dataTransfer.getData("text/plain").trim();
        if (event.target.closest?.("textarea, input[type=text]") && !files.length) return;
        event.preventDefault();
        if (files.length || magnetOf(text)) openAdd({ files, text: magnetOf(text) ? text : "" });
    });
    addEventListener("paste", (event) => {
        if (event.target.closest?.("input, textarea")) return;
        const files = [...(event.clipboardData?.files ?? [])].filter((one) => /\.torrent$/i.test(one.name));
        const text = (event.clipboardData?.getData("text/plain") ?? "").trim();
        const lines = text.split(/\s+/).filter(magnetOf);
        if (files.length || lines.length) openAdd({ files, text: lines.join("\n") });
    });
}

/** Opens the question for a link that the address brings, as another page's magnet link does: it is asked, not done. */
export const followAddress = (route, look) => effect(() => {
    const { magnet } = route.value.query;
    if (magnet === undefined) return;
    look({ magnet: null });
    queueMicrotask(() => openAdd({ text: magnetOf(magnet) ? magnet : "" }));
});
