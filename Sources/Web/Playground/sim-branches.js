// The branches of a run, what is beside it, shrinking, and what can be taken away: link, command, files.

import { tell } from "./dialog.js";
import { h, listen, named } from "./dom.js";
import { counted } from "./format.js";
import { signal } from "./signals.js";
import { secondsText } from "./sim-run.js";
import { option } from "./sim-setup.js";
import { parts, told, whatIfs } from "./sim-words.js";
import { badge, copyButton } from "./widgets.js";

/** Tries of a search that are shown: the last ones. */
const mostTries = 200;

/** The branches of this visit, and which is beside the one that is shown. */
export function branches(m) {
    const title = (words, all) => {
        const ifs = whatIfs(words);
        if (!ifs.length) return "Original";
        const last = told(ifs.at(-1), m.names());
        return `${all.indexOf(words) + 1} · ${last}${ifs.length > 1 ? ` (${ifs.length} changes)` : ""}`;
    };
    return h("div.sim-branches", { hidden: () => m.branches.value.length < 2 && !whatIfs(now(m)).length },
        h("div.row.tight", { role: "group", "aria-label": "Branches" }, () => shown(m).map((words) =>
            h("span.sim-branch", { class: { on: words === now(m) } },
                h("button", { type: "button", "aria-pressed": String(words === now(m)),
                    title: whatIfs(words).map((one) => told(one, m.names())).join("\n"),
                    onclick: () => m.open(words, { isKept: true }) }, title(words, m.branches.value)),
                words === now(m) || m.branches.value.length < 2 ? null : h("button.quiet", { type: "button",
                    "aria-label": `Forget ${title(words, m.branches.value)}`, onclick: () => m.forget(words) }, "✕")))),
        h("div.row.tight", { hidden: () => !whatIfs(now(m)).length },
            h("button", { type: "button", id: "undo", onclick: m.undo, disabled: () => m.isOpening.value !== null },
                "Undo"),
            h("label.inline", null, h("span", null, "Beside it"), () => besideChoice(m)),
            h("span.muted", { role: "status" }, () => compared(m))),
        h("ul.sim-unmet", { role: "status" }, () => (m.run.value?.info.whatIfs ?? []).filter((one) => one.unmet)
            .map((one) => h("li", null, `${told(one.words, m.names())}, but nothing came of it: ${one.unmet}.`))));
}

const now = (m) => m.run.value?.info.words ?? "";

/** The chips: the first, the one that is shown, and the latest. */
function shown(m) {
    const all = m.branches.value;
    if (all.length <= 8) return all;
    return all.filter((one, at) => at === 0 || at >= all.length - 6 || one === now(m));
}

function besideChoice(m) {
    const all = whatIfs(now(m));
    const names = m.names();
    return h("select", { id: "beside", onchange: (event) =>
        m.showBeside(event.target.value === "none" ? null : Number(event.target.value)) },
    [["none", "nothing"], ["0", "the original"],
        ...all.slice(0, -1).map((one, at) => [String(at + 1), `up to ${told(one, names)}`]).slice(-20)]
        .map(([value, text]) => option(value, text, value === String(m.besideCount.value ?? "none"))));
}

function compared(m) {
    const [run, beside] = [m.run.value, m.beside.value];
    if (!run || !beside) return "";
    const at = m.parting.value;
    if (at === null) return "Both are the same to the end.";
    const count = beside.violations.length;
    return `They part at step ${at}, ${secondsText(run.timeOf(at), 3)}. In the other, ${count
        ? `${count} ${count === 1 ? "promise is" : "promises are"} broken` : "all promises hold"}.`;
}

// MARK: Shrinking

/** Makes a failing run smaller, and tells what was tried. */
export function shrinking(m) {
    const state = signal(null);
    let isOver = true;
    const begin = async () => {
        const words = m.run.peek().info.words;
        isOver = false;
        state.value = { origin: words, tries: 0 };
        try {
            let answer = await m.engine.ask("shrink", words);
            while (!isOver) {
                const tried = [...state.peek()?.tried ?? [], ...answer.tried ?? []].slice(-mostTries);
                state.value = { origin: words, ...answer, tried };
                if (answer.done) break;
                answer = await m.engine.ask("shrinkNext");
            }
        } catch (problem) {
            state.value = null;
            tell(problem.message, "bad");
        }
        isOver = true;
        if (state.value) state.value = { ...state.value, isOver: true };
    };
    const left = (one) => Object.entries(one ?? {}).filter(([, value]) => value !== null && value !== undefined)
        .map(([name, value]) => counted(value, name === "whatIfs" ? "what-if" : name.replace(/s$/, ""))).join(" · ");
    return h("div.sim-shrink", { hidden: () => !m.run.value?.violations.length && !state.value },
        h("div.row.tight", null,
            h("button", { type: "button", id: "shrink", hidden: () => Boolean(state.value && !state.value.isOver),
                onclick: begin }, "Make it smaller"),
            h("button", { type: "button", hidden: () => !state.value || state.value.isOver,
                onclick: () => (isOver = true) }, "Enough"),
            h("span", { role: "status" }, () => (state.value ? `${state.value.tries} runs tried${
                state.value.done ? "; it does not get smaller" : state.value.isOver ? "" : " …"}` : "")),
            h("button.primary", { type: "button", id: "open-smaller",
                hidden: () => !state.value?.words || state.value.words === m.run.value?.info.words,
                onclick: () => m.open(state.peek().words, { isFresh: true }) }, "Open the smaller run")),
        () => (state.value?.words ? h("p", null, h("b", null, left(state.value.left)), h("br"),
            h("span.muted.sim-small", null, named(state.value.summary ?? "", 600))) : null),
        () => (state.value?.tried?.length ? h("details.sim-tried", null, h("summary", null, "What was tried"),
            h("ol", null, withDifferences(state.value.origin, state.value.tried).map(({ fails, text }) => h("li", null,
                badge(fails ? "bad" : "quiet-badge", fails ? "still broken" : "holds"), " ",
                h("code", null, named(text, 300)))))) : null));
}

/** Each try with what it changes in the smallest run before it. */
function withDifferences(origin, tried) {
    let smallest = origin;
    return tried.map(({ words, fails }) => {
        const text = difference(smallest, words);
        if (fails) smallest = words;
        return { fails, text };
    });
}

/** The parts in which a run's words differ from another's. */
function difference(origin, words) {
    const before = parts(origin);
    const changed = Object.entries(parts(words)).filter(([key, value]) => before[key] !== value);
    return changed.map(([key, value]) => `${key}=${value}`).join(" ") || "the same run";
}

// MARK: What is taken away

/** Link, command and files. */
export function takeAway(m) {
    const save = async (name, what, ending, type, options) => {
        const run = m.run.peek();
        try {
            const bytes = await m.engine.ask(what, run.info.words, ...(options ? [options] : []));
            const link = document.createElement("a");
            link.href = URL.createObjectURL(new Blob([bytes], { type }));
            link.download = `${fileName(run)}.${ending}`;
            document.body.append(link);
            link.click();
            link.remove();
            setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
        } catch (problem) {
            tell(`${name} could not be made: ${problem.message}`, "bad");
        }
    };
    const box = h("details.sim-export", null, h("summary.button", null, "Export"), h("div.sim-menu", null,
        h("p.muted", null, "The same run, natively:"),
        h("code.sim-command", null, () => m.run.value?.info.command ?? ""),
        copyButton(() => m.run.peek()?.info.command ?? "", "Command"),
        h("button", { type: "button", id: "save-svg", onclick: () => {
            const { from, to } = m.view.peek();
            save("The picture", "svg", "svg", "image/svg+xml", { from: Math.max(from, 0) / 1e3, until: to / 1e3,
                keepalives: !m.hidden.peek().has("life") });
        } }, "Picture of what is seen (SVG)"),
        h("button", { type: "button", id: "save-pcap", onclick: () => save("The capture", "pcap", "pcapng",
            "application/vnd.tcpdump.pcap") }, "Capture for Wireshark (pcapng)"),
        h("button", { type: "button", id: "save-text", onclick: () => save("The text", "text", "txt", "text/plain") },
            "Trace (text)")));
    box.addEventListener("keydown", (event) => {
        if (event.key !== "Escape" || !box.open) return;
        event.stopPropagation();
        box.open = false;
        box.querySelector("summary").focus();
    });
    listen(document, "pointerdown", (event) => box.contains(event.target) || (box.open = false));
    return h("div.row.tight.sim-take", { hidden: () => !m.run.value }, copyButton(m.link, "Link"), box);
}

const fileName = (run) => `swarmkeeper-${(run.info.words.split("&if=")[0]).replace(/[^\w-]+/g, "-").slice(0, 60)}`
    + `-${run.info.hash.slice(0, 6)}`;
