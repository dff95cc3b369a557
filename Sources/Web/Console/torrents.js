// Torrents: what is registered here, from files or uploaded; upload, look into, download, copy the magnet link, delete.

import { get, has, largestTorrentFile, order, part, upload } from "./api.js";
import { ask, attempt, tell } from "./dialog.js";
import { h, list, named } from "./dom.js";
import { bytes, count } from "./format.js";
import { go, href, look, route } from "./route.js";
import { signal } from "./signals.js";
import { may } from "./stream.js";
import { fromStart, keepFresh } from "./swarms.js";
import { bigTable } from "./table.js";
import { badge, copyButton, figure, heading, nameOf, searchField } from "./widgets.js";

const columns = [
    { name: "Name" }, { name: "Size", class: "number.wide" }, { name: "Seeders", class: "number" },
        { name: "Leechers", class: "number" },
    { name: "Completed", class: "number.wide" }, { name: "From", class: "from.wide" },
];

const canUpload = () => has("uploads") && may("uploader");

export function torrentsPage() {
    const query = () => route.value.query;
    const table = bigTable({
        label: "Torrents", columns, noun: "torrent", empty: "No torrent is like that, or none is registered.",
        what: () => query().q ?? "", after: () => query().after ?? null, moved: (after) => look({ after }),
            key: (one) => one.infoHash,
        load: async (after, limit, cancel) => {
            const answer = await get("torrents", { q: query().q, after, limit }, { cancel });
            return { rows: answer.torrents, next: answer.next, total: answer.total };
        },
        row: (one) => [
            h("td.name", null, h("a", { href: () => href(["torrents", one.value.infoHash]) },
                () => nameOf(one.value.name)),
                h("span.sub.narrow", null, () => `${bytes(one.value.byteCount)} · from ${one.value.origin}`)),
            h("td.number.wide", null, () => bytes(one.value.byteCount)),
            h("td.number", null, () => count(one.value.seeders)),
            h("td.number", null, () => count(one.value.leechers)),
            h("td.number.wide", null, () => count(one.value.completed)),
            h("td.from.wide", null, () => [badge("plain", one.value.origin), one.value.hasFile ? null
                : h("span.muted", null, " name only")]),
        ],
    });
    keepFresh(table.refresh);
    return h("div.filled", null,
        heading("Torrents", searchField("Beginning of a hash, or part of a name", query().q ?? "",
            (q) => look({ q, after: null })), fromStart(table)),
        uploads(table.refresh),
        table.element);
}

// MARK: Uploads

function uploads(done) {
    const running = signal([]);
    let last = 0;
    const send = async (files) => {
        const largest = largestTorrentFile();
        for (const file of files) {
            if (file.size > largest) {
                tell(h("span", null, named(file.name),
                    ` has ${bytes(file.size)}: a torrent file has ${bytes(largest)} at most.`), "bad");
                continue;
            }
            const one = { id: (last += 1), name: file.name, share: signal(0) };
            running.value = [...running.peek(), one];
            try {
                const told = await upload("torrents", file, (share) => (one.share.value = share));
                tell(h("span", null, named(told?.name ?? file.name), " is there."));
                done();
            } catch (refusal) {
                tell(h("span", null, named(file.name), ": ", named(refusal.message)), "bad");
            }
            running.value = running.peek().filter((other) => other !== one);
        }
    };
    const picker = h("input", { type: "file", id: "file", accept: ".torrent,application/x-bittorrent", multiple: true,
        "aria-label": "Torrent files",
        onchange: () => send([...picker.files]).then(() => (picker.value = "")) });
    const zone = h("div.drop", {
        hidden: () => !canUpload(), "data-busy": () => running.value.length > 0,
        ondragover: (event) => {
            event.preventDefault();
            zone.classList.add("over");
        },
        ondragleave: () => zone.classList.remove("over"),
        ondrop: (event) => {
            event.preventDefault();
            zone.classList.remove("over");
            send([...event.dataTransfer.files]);
        },
    }, h("label.row", null, h("span", null, "Drop .torrent files here, or choose them:"), picker),
    list(h("ul.plain", null), () => running.value, (one) => one.id, (one) => h("li.row", null,
        h("span.grow", null, named(one.peek().name)),
            h("progress", { max: "1", "aria-label": "Sent", value: () => one.peek().share.value }))));
    return zone;
}

// MARK: One torrent

export function torrentPage(hash) {
    const torrent = signal(null);
    const problem = signal("");
    const path = `torrents/${part(hash)}`;
    const learn = () => get(path).then((told) => (torrent.value = told),
        (refusal) => (problem.value = refusal.message));
    learn();
    keepFresh(learn);
    const remove = async (event) => {
        const isSure = await ask({ title: "Delete this torrent?", action: "Delete", isGrave: true, text: [
            h("span", null, named(torrent.peek()?.name ?? hash)),
            "Its file and its name are removed from all trackers. Its swarm goes on where info hashes need no permission."] });
        if (isSure && await attempt(() => order("DELETE", path), "It is deleted.", event.target)) go(["torrents"]);
    };
    return h("div", null,
        h("p.crumbs", null, h("a", { href: "#/torrents" }, "Torrents"), " / ", h("span.hash", null, hash)),
        h("h1.title", { tabindex: "-1" }, () => (torrent.value ? nameOf(torrent.value.name) : problem.value || "…")),
        h("div.toolbar", { hidden: () => !torrent.value },
            h("a.button.primary", { href: `/api/v1/${path}/file`, download: "",
                hidden: () => !torrent.value?.hasFile }, "Download"),
            copyButton(() => torrent.peek()?.magnet ?? "", "Magnet link"),
            h("a.button.quiet", { href: href(["swarms", hash]) }, "Peers"),
            h("button.grave", { type: "button", onclick: remove, hidden: () => !canUpload()
                || torrent.value?.origin === "file" }, "Delete …")),
        h("dl.figures.small", { hidden: () => !torrent.value },
            figure("Size", () => bytes(torrent.value?.byteCount)),
                figure("Pieces of", () => bytes(torrent.value?.pieceByteCount)),
            figure("Seeders", () => count(torrent.value?.seeders)),
                figure("Leechers", () => count(torrent.value?.leechers)),
            figure("Completed", () => count(torrent.value?.completed)),
                figure("From", () => torrent.value?.origin ?? "–")),
        h("p.muted", { hidden: () => torrent.value?.hasFile !== false }, "Its name and size are known, its file is not kept "
            + "here: ", () => named(torrent.value?.whyNoFile ?? "")),
        h("p.muted", { hidden: () => torrent.value?.origin !== "file" }, "It is in the master's directory of torrents, and "
            + "stays until it is taken away there and the directory is read again."),
        files(torrent));
}

const filesMost = 1000;

function files(torrent) {
    const all = () => torrent.value?.files ?? [];
    return h("section", { hidden: () => all().length === 0 },
        h("h2", null, () => `Files (${count(all().length)})`),
        h("div.table-box", null, h("table", null,
            h("thead", null, h("tr", null, h("th", { scope: "col" }, "Path"),
            h("th.number", { scope: "col" }, "Size"))),
            list(h("tbody", null), () => all().slice(0, filesMost).map((file, at) => ({ ...file, at })),
                (file) => file.at, (file) =>
                h("tr", null, h("td.name", null, () => named(file.value.path)),
                    h("td.number", null, () => bytes(file.value.byteCount)))))),
        h("p.muted", { hidden: () => all().length <= filesMost },
            () => `… and ${count(all().length - filesMost)} more.`));
}
