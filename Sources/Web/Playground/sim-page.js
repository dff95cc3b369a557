// A run: what is run above, the diagram and the strip of time in the middle, step, trackers and what-ifs beside them.

import { h, listen } from "./dom.js";
import { stored } from "./frame.js";
import { effect, onEnd, signal } from "./signals.js";
import { branches, shrinking, takeAway } from "./sim-branches.js";
import { diagram } from "./sim-diagram.js";
import { stepList } from "./sim-list.js";
import { firstWords } from "./sim-model.js";
import { messageCard, stepCard, trackersCard } from "./sim-panel.js";
import { scrubber } from "./sim-scrubber.js";
import { reasons, setup, storyCard, verdict } from "./sim-setup.js";
import { filters, player, transport, viewing } from "./sim-transport.js";
import { messageDeeds, pendingCard, whatIfCard } from "./sim-whatif.js";
import { isNet } from "./sim-words.js";
import { heading } from "./widgets.js";

export const keyHelp = [
    ["← →", "a step back, a step on; with Shift ten"], ["Home End", "the beginning, the end"], ["Space", "play, pause"],
    ["E V C B", "the next election, vote, commit, broken promise; with Shift the one before"],
    ["N P", "the next of what is looked for, the one before"], ["J K", "the story’s next sentence, the one before"],
    ["+ − 0", "closer, farther, the whole run"], ["L", "diagram or list"], ["M", "choose the next message of the step"],
    ["X", "lose the chosen message"], ["D", "as the network: deliver the chosen message, or the first that waits"],
    ["G", "as the network: let time go on"], ["U", "undo the last what-if"], ["Y", "copy the link"],
    ["/", "search; Enter goes to the next match"], ["Esc", "let go of what is chosen"],
];

export function runPage(m) {
    const play = player(m);
    const story = storyCard(m);
    const label = () => `Trackers over time, and the messages between them. ${where(m)} The list view says the same.`;
    const main = diagram(m, { run: () => m.run.value, label, isMain: true });
    const beside = diagram(m, { run: () => m.beside.value, label: "The run beside it", isMain: false });
    listenToRunKeys(m, play, story);
    return h("div.sim-page", null,
        h("div.sim-head", null, heading("Simulator", takeAway(m)), setup(m)),
        problem(m), otherVersion(m), story.card,
        h("div.sim-body", { hidden: () => !m.run.value },
            h("div.sim-main", null,
                h("div.sim-top", null, verdict(m), viewing(m)), shrinking(m), reasons(m), branches(m),
                h("div.sim-pictures", { hidden: () => m.isList.value },
                    h("h2.sim-which", { hidden: () => !m.beside.value }, "This branch"), main,
                    h("h2.sim-which", { hidden: () => !m.beside.value }, "Beside it"),
                    h("div", { hidden: () => !m.beside.value }, beside)),
                stepList(m), scrubber(m), transport(m, play), filters(m), legend(m)),
            h("aside.sim-side", { "aria-label": "The step" },
                h("div.sim-cards", null, netFirst(m), messageCard(m, messageDeeds(m)), stepCard(m), trackersCard(m),
                    whatIfCard(m)))),
        voice(m, play));
}

/** What is under way is first where the person is the network. */
function netFirst(m) {
    const card = pendingCard(m);
    effect(() => card.classList.toggle("first", Boolean(m.run.value && isNet(m.run.value.info.words))));
    return card;
}

const where = (m) => (m.run.value ? `Step ${m.step.value} of ${m.run.value.count}.` : "");

function problem(m) {
    return h("section.card.sim-problem", { role: "alert", hidden: () => !m.problem.value },
        h("p", null, h("b", null, "This cannot be run. "), () => sentence(m.problem.value?.text ?? "")),
        h("p", null, h("code.sim-command", null, () => m.problem.value?.words ?? "")),
        h("div.row", null, h("button.primary", { type: "button",
            onclick: () => m.open(firstWords, { isFresh: true }) }, "Begin with a story"),
        h("button", { type: "button", hidden: () => !m.run.value, onclick: () => (m.problem.value = null) },
            "Stay with the last run")));
}

/** With a capital letter, and a stop at its end. */
const sentence = (text) => `${text.charAt(0).toUpperCase()}${text.slice(1)}${/[.!?]$/.test(text) || !text ? "" : "."}`;

function otherVersion(m) {
    return h("section.card.sim-other", { hidden: () => !m.otherHash.value },
        h("p", null, h("b", null, "The link is of another version. "),
            () => "The seed means another run here: the trace "
            + `hash was ${m.otherHash.value} there, and is ${m.run.value?.info.hash} here, where another logic runs.`),
        h("button", { type: "button", onclick: () => (m.otherHash.value = null) }, "Understood"));
}

/** What the signs mean. */
function legend() {
    const signs = [["★", "accent", "becomes master"], ["▲", "hue-2", "stands for master"], ["▽", "warn", "steps down"],
        ["▮", "hue-1", "commits"], ["◯", "ink-2", "starts"], ["✕", "bad", "dies, or a message is lost"],
        ["◆", "hue-4", "state transfer"]];
    const roles = [["accent", "master"], ["hue-3", "slave"], ["hue-2", "candidate"], ["edge", "newcomer"]];
    return h("p.sim-legend", null, signs.map(([sign, color, text]) => h("span", null, h("span.glyph",
        { "aria-hidden": "true", style: { color: `var(--${color})` } }, sign), text)),
    roles.map(([color, text]) => h("span", null, h("span.sim-band", { "aria-hidden": "true",
        class: { [`of-${text}`]: true }, style: { background: `var(--${color})` } }), text)));
}

/** What a screen reader says when a step is gone to, but not while it is played or dragged. */
function voice(m, play) {
    const said = signal("");
    let timer = null;
    effect(() => {
        const [run, step] = [m.run.value, m.step.value];
        clearTimeout(timer);
        if (!run || play.isPlaying.value) return;
        timer = setTimeout(() => (said.value = `Step ${step}: ${run.lines[step]}`), 700);
    });
    onEnd(() => clearTimeout(timer));
    return h("div.unseen", { "aria-live": "polite" }, () => said.value);
}

// MARK: Keys

function listenToRunKeys(m, play, story) {
    const jump = (what) => (event) => m.jump(what, event.shiftKey ? -1 : 1);
    const steps = (by) => (event) => m.goTo(m.step.peek() + by * (event.shiftKey ? 10 : 1));
    const acts = {
        ArrowLeft: steps(-1), ArrowRight: steps(1), Home: () => m.goTo(0), End: () => m.goTo(Infinity),
        " ": play.turn, e: jump("election"), v: jump("votes"), c: jump("commit"), b: jump("violation"),
        n: () => m.jump(play.what.peek(), 1), p: () => m.jump(play.what.peek(), -1),
        j: () => story.next(1), k: () => story.next(-1),
        "+": () => m.zoom(1 / 1.6), "=": () => m.zoom(1 / 1.6), "-": () => m.zoom(1.6), 0: m.whole,
        l: () => (m.isList.value = !m.isList.peek()), m: () => nextMessage(m), x: () => lose(m),
        d: () => deliver(m), g: () => isMine(m) && m.whatIf("time", m.run.peek().count), u: m.undo,
        y: () => document.querySelector(".sim-take button")?.click(), Escape: () => m.choose(null),
    };
    listen(window, "keydown", (event) => {
        if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
        if (event.defaultPrevented || event.target.closest?.("input, textarea, select, .scroller")) return;
        const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
        if (key.length === 1 && stored("keys") === "off") return;
        // Buttons and links have their own use of the space bar.
        if (key === " " && event.target.closest?.("button, a, summary")) return;
        if (!acts[key]) return;
        event.preventDefault();
        acts[key](event);
    });
}

const isMine = (m) => Boolean(m.run.peek() && isNet(m.run.peek().info.words) && !m.isOpening.peek());

/** Of the messages that came in the step or were sent in it, the next after the chosen one. */
function nextMessage(m) {
    const run = m.run.peek();
    if (!run) return;
    const all = [...run.arrivedIn(m.step.peek()), ...run.sentIn(m.step.peek())];
    if (all.length) m.choose(all[(all.indexOf(m.chosen.peek()) + 1) % all.length]);
}

function lose(m) {
    const [run, one] = [m.run.peek(), m.chosen.peek()];
    if (!run || one === null || run.messages.fate[one] === 1) return;
    const at = run.isUnderWay(one, m.step.peek()) ? m.step.peek() : run.messages.sentStep[one];
    if (at) m.whatIf(`drop.${run.messages.id[one]}`, at);
}

function deliver(m) {
    if (!isMine(m)) return;
    const [run, one] = [m.run.peek(), m.chosen.peek()];
    const chosen = one !== null && run.messages.arrivedStep[one] === 0 ? run.messages.id[one] : null;
    const first = document.querySelector("[data-take]")?.dataset.take;
    if (chosen ?? first) m.whatIf(`take.${chosen ?? first}`, run.count);
}
