// The files of a transfer: which are wanted, how much of each is there.

import { order } from "/console/api.js";
import { tell } from "/console/dialog.js";
import { h, list, named } from "/console/dom.js";
import { bytes, count, counted } from "/console/format.js";
import { look, route } from "/console/route.js";
import { computed, signal } from "/console/signals.js";
import { searchField } from "/console/widgets.js";
import { pathOf } from "./peer-actions.js";
import { percent } from "./peer-words.js";

/** Rows at first; the others come when they are asked for. */
const first = 200;

export function filesPart(hash, one) {
    const all = computed(() => one.value?.files ?? []);
    const isCut = () => (one.value?.fileCount ?? 0) > all.value.length;
    const wish = wishes(hash, all);
    const most = signal(first);
    const some = computed(() => {
        const text = (route.value.query.file ?? "").toLowerCase();
        return text ? all.value.filter((file) => file.path.toLowerCase().includes(text)) : all.value;
    });
    const shown = computed(() => some.value.slice(0, most.value));
    const wantedCount = () => all.value.filter((file) => wish.isWanted(file)).length;
    const setAll = (isWanted) => wish.set(some.peek().map((file) => file.index), isWanted);
    return h("div.part", null,
        h("div.toolbar", { hidden: () => all.value.length < 2 },
            searchField("Part of a path", route.peek().query.file ?? "", (file) => look({ file })),
            h("button", { type: "button", disabled: isCut, onclick: () => setAll(true) },
                () => (route.value.query.file ? "Want those shown" : "Want all")),
            h("button", { type: "button", disabled: isCut, onclick: () => setAll(false) },
                () => (route.value.query.file ? "Leave those shown out" : "Want none")),
            h("span.muted", { role: "status" }, () => (wantedCount() > 0 || isCut()
                ? `${count(wantedCount())} of ${counted(all.value.length, "file")} wanted`
                : "None is wanted: choose those that are. Until then it goes on as before."))),
        h("p.muted", { hidden: () => !isCut() }, () => `The torrent has ${count(one.value?.fileCount)} files, too many to `
            + `choose from here; the first ${count(all.value.length)} are shown.`),
        h("p.muted", { hidden: () => all.value.length > 0 }, "The files are known as soon as a peer has told the torrent."),
        h("div.table-box", { hidden: () => all.value.length === 0 }, h("table.cards.files", { "aria-label": "Files" },
            h("thead", null, h("tr", null, h("th", { scope: "col" }, "Wanted"), h("th", { scope: "col" }, "Path"),
                h("th.number", { scope: "col" }, "Size"), h("th", { scope: "col" }, "There"))),
            list(h("tbody", null), () => shown.value, (file) => file.index, (file) => row(file, wish, isCut)))),
        h("button", { type: "button", hidden: () => some.value.length <= most.value,
            onclick: () => (most.value = Infinity) }, () => `Show all ${count(some.value.length)}`));
}

function row(file, wish, isCut) {
    const share = () => (file.value.byteCount > 0 ? file.value.verified / file.value.byteCount : 1);
    return h("tr", { class: () => ({ unwanted: !wish.isWanted(file.value) }) },
        h("td.pick", null, h("input", { type: "checkbox", disabled: isCut,
            "aria-label": () => `Want ${file.value.path}`.slice(0, 300), checked: () => wish.isWanted(file.value),
            onchange: (event) => wish.set([file.peek().index], event.target.checked) })),
        h("td.name", null, () => path(file.value.path)),
        h("td.number", { "data-label": "Size" }, () => bytes(file.value.byteCount)),
        h("td.there", { "data-label": "There" },
            h("span.left", null, h("span.bar", { role: "img", "aria-label": () => `${percent(share())} there` },
                h("span", { style: () => ({ width: `${Math.min(Math.max(share(), 0), 1) * 100}%` }) })),
            h("span", null, () => percent(share())))));
}

/** The folders before the name are less to look at. */
function path(text) {
    const at = text.lastIndexOf("/") + 1;
    return [at ? h("span.muted", null, named(text.slice(0, at), 300)) : null, named(text.slice(at), 300)];
}

/**
 * Which files are wanted: what was clicked last until the peer has heard it. Orders go one after the other, and what
 * was clicked meanwhile goes together.
 */
function wishes(hash, all) {
    const wish = signal(null);
    let isRunning = false;
    const send = async () => {
        if (isRunning) return;
        isRunning = true;
        try {
            // None at all is no order: it is where some begin before they choose the few that they want.
            for (let sent = null; sent !== wish.peek() && wish.peek().size;) {
                sent = wish.peek();
                const files = [...sent].sort((a, b) => a - b);
                await order("PATCH", pathOf(hash), { files: files.length === all.peek().length ? null : files });
            }
            // The next state tells it.
            setTimeout(() => !isRunning && wish.peek()?.size && (wish.value = null), 1500);
        } catch (refusal) {
            tell(refusal.message, "bad");
            wish.value = null;
        } finally {
            isRunning = false;
        }
    };
    return {
        isWanted: (file) => (wish.value ? wish.value.has(file.index) : file.isWanted),
        set(indexes, isWanted) {
            const next = new Set(wish.peek() ?? all.peek().filter((file) => file.isWanted).map((file) => file.index));
            for (const index of indexes) next[isWanted ? "add" : "delete"](index);
            wish.value = next;
            send();
        },
    };
}
