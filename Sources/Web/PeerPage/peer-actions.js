// What is done to transfers, to one or to many: each order, what is asked before it, how it went.

import { file, get, order, part } from "/console/api.js";
import { ask, attempt, tell } from "/console/dialog.js";
import { h, named } from "/console/dom.js";
import { bytes, count, counted } from "/console/format.js";
import { signal } from "/console/signals.js";
import { nameOf } from "/console/widgets.js";
import { forget, learn, settings, transfers } from "./peer-stream.js";

/** Orders at once, where many transfers are chosen. */
const atOnce = 6;
/** Names that a question tells; there may be hundreds. */
const namesMost = 8;

export const pathOf = (hash) => `transfers/${part(hash)}`;

const done = {
    pause: "paused", resume: "going on", recheck: "being checked", announce: "asking trackers",
};

/** Pauses, resumes, rechecks or announces; says how it went where that is not seen. */
export async function act(name, hashes, button) {
    const failures = await each(hashes, async (hash) => learn(await order("POST", `${pathOf(hash)}/${name}`)), button);
    if (failures.length) tellFailures(failures);
    else if (hashes.length > 1 || name === "announce") {
        tell(hashes.length > 1 ? `${counted(hashes.length, "transfer")}: ${done[name]}.`
            : "Its trackers are asked now, as far as they allow it.");
    }
}

/** @returns those that failed, each with the refusal. */
async function each(hashes, work, button) {
    const waiting = [...hashes];
    const failures = [];
    const run = async () => {
        for (let hash = waiting.shift(); hash; hash = waiting.shift()) {
            try {
                await work(hash);
            } catch (refusal) {
                failures.push([hash, refusal]);
            }
        }
    };
    if (button) button.disabled = true;
    await Promise.all(Array.from({ length: atOnce }, run));
    if (button) button.disabled = false;
    return failures;
}

function tellFailures(failures) {
    for (const [hash, refusal] of failures.slice(0, namesMost)) {
        tell(h("span", null, nameOf(transfers.peek()?.get(hash)?.name ?? hash), ": ", named(refusal.message)), "bad");
    }
    if (failures.length > namesMost) tell(`${count(failures.length - namesMost)} more failed.`, "bad");
}

// MARK: Remove

/** Asks whether and how, with what exactly is deleted; removes. Returns whether it did. */
export async function remove(hashes) {
    const all = hashes.map((hash) => transfers.peek()?.get(hash)).filter(Boolean);
    if (!all.length) return false;
    const withData = signal(false);
    // Of one, the files; of many, their names.
    const files = all.length === 1 ? await get(pathOf(all[0].hash)).then((told) => told, () => null) : null;
    const way = (value, title, about) => h("label.way", null,
        h("input", { type: "radio", name: "data", value: String(value), checked: !value,
            onchange: () => (withData.value = value) }),
        h("span", null, h("b", null, title), h("span.sub", null, about)));
    const answer = await ask({
        title: all.length === 1 ? "Remove this transfer?" : `Remove ${counted(all.length, "transfer")}?`,
        text: all.length === 1 ? nameOf(all[0].name) : [], isGrave: true,
        action: () => (withData.value ? `Remove and delete ${have(all)}` : "Remove, keep the files"),
        fields: [
            h("fieldset.ways", null, h("legend.unseen", null, "What becomes of the files"),
                way(false, "Keep the files", "It leaves the list; what is on the disk stays."),
                way(true, "Delete the files, too", "What is deleted cannot be brought back.")),
            h("div.doomed", { hidden: () => !withData.value, "aria-live": "polite" }, doomed(all, files)),
        ],
    });
    if (!answer) return false;
    const failures = await each(hashes, async (hash) => {
        await order("DELETE", `${pathOf(hash)}?data=${answer.data === "true"}`);
        forget(hash);
    });
    if (failures.length) tellFailures(failures);
    else {
        tell(h("span", null, all.length === 1 ? nameOf(all[0].name) : counted(all.length, "transfer"),
            answer.data === "true" ? " removed, and the files deleted." : " removed; the files stay."));
    }
    return failures.length < hashes.length;
}

/** Bytes of them that are on the disk, as far as that is known. */
function have(all) {
    const sum = all.reduce((so, one) => so + onDisk(one), 0);
    return sum > 0 ? bytes(sum) : "what is there";
}

function onDisk(one) {
    if (!Number.isFinite(one.byteCount)) return 0;
    return Math.max(one.byteCount - (Number.isFinite(one.missing) ? one.missing : 0), 0);
}

/** Where it lies on the peer's disk. */
export function placeOf(transfer) {
    const root = (settings.value?.directory ?? "").replace(/\/+$/, "");
    return [root, transfer.directory].filter(Boolean).join("/") || "/";
}

function doomed(all, detail) {
    if (all.length > 1) {
        return [
            h("p", null, `The files of these ${count(all.length)} transfers are deleted, and nothing beside them:`),
            rows(all, (one) => [nameOf(one.name), " ", h("span.muted", null, bytes(onDisk(one)))]),
        ];
    }
    if (!detail?.files?.length) {
        return h("p", null, "Nothing of it is known to be on the disk yet; what there is of it in ",
            h("code", null, named(placeOf(all[0]))), " is deleted.");
    }
    const most = detail.fileCount ?? detail.files.length;
    return [
        h("p", null, most === 1 ? "This file is deleted in " : `These ${count(most)} files are deleted in `,
            h("code", null, named(placeOf(all[0]))), most === 1 ? ", and nothing beside it:" : ", and nothing beside them:"),
        rows(detail.files, (one) => [named(one.path), " ", h("span.muted", null, bytes(one.byteCount))], most),
    ];
}

const rows = (all, text, total = all.length) => h("ul.plain", null,
    all.slice(0, namesMost).map((one) => h("li", null, text(one))),
    total > namesMost ? h("li.muted", null, `… and ${count(total - namesMost)} more`) : null);

// MARK: Files and peers

/**
 * A link to a torrent file. A click has the page fetch it: so a token goes along, and the file gets the torrent's name,
 * which the server would not put into a header.
 */
export function torrentLink(path, name, kind = "a.button") {
    const text = () => `${String(name() ?? "torrent").replace(/[\u0000-\u001f\u007f/\\]/g, "_").slice(0, 120)}.torrent`;
    return h(kind, {
        href: `/api/v1/${path}`, download: text,
        onclick: (event) => {
            event.preventDefault();
            attempt(async () => {
                const link = document.createElement("a");
                link.href = URL.createObjectURL(await file(path));
                link.download = text();
                link.click();
                setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
            });
        },
    }, ".torrent file");
}

/** Asks for a peer's address, and has it asked. */
export async function addPeer(hash) {
    const field = h("input", { type: "text", name: "address", required: true, autocomplete: "off", spellcheck: "false",
        placeholder: "192.0.2.7:6881" });
    const answer = await ask({
        title: "Add a peer", action: "Add", text: "It is asked besides those that trackers tell.",
        fields: [h("label", null, h("span", null, "Its address and port"), field)],
    });
    if (!answer?.address?.trim()) return;
    const address = answer.address.trim();
    await attempt(async () => learn(await order("POST", `${pathOf(hash)}/peers`, { address })),
        h("span", null, named(address), " is asked."));
}
