// What if: what a person may do at a step, and the messages that are under way there. In net mode the person is the
// network, and chooses what is delivered next.

import { h, list, named } from "./dom.js";
import { computed, effect, signal } from "./signals.js";
import { lastOf } from "./sim-client.js";
import { keepsFocus } from "./sim-panel.js";
import { isNet } from "./sim-words.js";

const spans = [["1000", "1 s"], ["2000", "2 s"], ["5000", "5 s"], ["10000", "10 s"], ["30000", "30 s"],
    ["60000", "60 s"]];
const delays = [["100", "0.1 s"], ["500", "0.5 s"], ["1500", "1.5 s"], ["5000", "5 s"], ["15000", "15 s"]];

/** What may be done to a tracker: [action, words, whether it lasts]. */
const deeds = [["kill", "dies", true], ["pause", "is held", true], ["cut", "is cut off from the others", true],
    ["fence", "loses its bus", true], ["disk", "has a full disk", true], ["wake", "comes back, goes on", false],
    ["hand", "is told to hand the role over to", false]];

const select = (label, options, value, onchange) => h("select", { "aria-label": label,
    onchange: (event) => onchange(event.target.value) },
    options.map(([one, text]) => h("option", { value: one, selected: one === value }, text)));

/** What may be done with a message at the step. */
export function messageDeeds(m) {
    let delay = "1500";
    return (run, one) => {
        const { id, sentStep, arrivedStep } = run.messages;
        const at = () => (run.isUnderWay(one, m.step.value) ? m.step.value : sentStep[one]);
        if (run.messages.fate[one] === 1 || !sentStep[one]) return null;
        const isHere = () => run.isUnderWay(one, m.step.value);
        const isDeliverable = isNet(run.info.words) && arrivedStep[one] === 0;
        return h("div.sim-deeds", null, h("h3", null, () => (isHere() ? "It is under way. What if …"
            : "What if, when it was sent, …")),
        h("div.row.tight", null,
            isDeliverable ? h("button.primary", { type: "button",
                onclick: () => m.whatIf(`take.${id[one]}`, run.count) }, "it comes now") : null,
            h("button", { type: "button", id: "lose", onclick: () => m.whatIf(`drop.${id[one]}`, at()) },
                "it is lost"),
            h("button", { type: "button", onclick: () => m.whatIf(`delay.${id[one]}.${delay}`, at()) },
                "it comes later by"),
            select("How much later", delays, delay, (value) => (delay = value))));
    };
}

/** What may be done to trackers at the step. */
export function whatIfCard(m) {
    const chosen = signal(new Set([0]));
    const deed = signal("kill");
    const span = signal("5000");
    const heir = signal("0");
    effect(() => {
        // The tracker of the step is the first that one thinks of.
        const bits = m.run.value?.trackers[m.step.value] ?? 0;
        if (bits) chosen.value = new Set([31 - Math.clz32(bits & -bits)]);
    });
    const act = () => {
        const places = [...chosen.peek()].sort((a, b) => a - b);
        if (!places.length) return;
        const lasts = deeds.find(([one]) => one === deed.peek())[2];
        if (deed.peek() === "cut") return m.whatIf(`cut.${places.join("-")}.${span.peek()}`);
        const id = m.names()[Number(heir.peek())];
        if (deed.peek() === "hand") return m.whatIf(places.map((one) => `hand.${one}.${id}`));
        m.whatIf(places.map((one) => `${deed.peek()}.${one}${lasts ? `.${span.peek()}` : ""}`));
    };
    const doesLast = () => deeds.find(([one]) => one === deed.value)[2];
    return h("section.card.sim-whatif", { "aria-label": "What if" },
        h("div.heading", null, h("h2", null, "What if, here …"),
            h("button.quiet.end", { type: "button", hidden: () => !m.run.value || isNet(m.run.value.info.words),
                onclick: () => m.whatIf("net") }, "Be the network")),
        h("div.row.tight", { role: "group", "aria-label": "Trackers" }, h("span", null, "tracker"), () =>
            m.names().map((name, place) => h("button.sim-pick", { type: "button",
                "aria-pressed": () => String(chosen.value.has(place)), onclick: () => m.turnHidden(chosen, place) },
            name))),
        h("div.row.tight", null,
            select("What happens", deeds.map(([one, text]) => [one, text]), deed.peek(), (v) => (deed.value = v)),
            h("span.row.tight", { hidden: () => !doesLast() }, "for", select("How long", spans, span.peek(),
                (value) => (span.value = value))),
            h("span", { hidden: () => deed.value !== "hand" }, () => select("To whom",
                m.names().map((name, place) => [String(place), `tracker ${name}`])
                    .filter(([place]) => /^\d+$/.test(m.names()[place])), heir.peek(),
                (value) => (heir.value = value))),
            h("button.primary", { type: "button", id: "act", onclick: act,
                disabled: () => chosen.value.size === 0 || m.isOpening.value !== null }, "Run on")));
}

// MARK: What is under way

/** The list of what is under way, soonest first; in net mode, to choose from. */
export function pendingCard(m) {
    const answer = signal(null);
    const isWanted = signal(false);
    const isMine = computed(() => Boolean(m.run.value && isNet(m.run.value.info.words)));
    const ask = lastOf((run, step) => m.engine.ask("pending", run.info.words, step),
        (all, [run, step], problem) => (answer.value = { run, step, all: all ?? [], problem: problem?.message }));
    effect(() => {
        if (m.run.value && (isWanted.value || isMine.value)) ask(m.run.value, m.step.value);
    });
    const shown = () => (answer.value?.all ?? []).filter((one) => !isMine.value || isLetter(one));
    const others = () => (answer.value?.all ?? []).filter((one) => isMine.value && !isLetter(one));
    const rows = list(h("ul.sim-pending", null), () => shown().slice(0, 200), (one) => one.id,
        (one) => h("li", null, () => row(m, one.value, isMine.value)));
    return keepsFocus(h("section.card.sim-waiting", { class: { mine: () => isMine.value }, "aria-label": "Under way" },
        () => (isMine.value ? netHead(m, shown().length) : null),
        h("details", { open: () => isMine.value,
            ontoggle: (event) => (isWanted.value = event.target.open) },
        h("summary", null, () => (isMine.value ? "Messages that wait" : "What is under way, and what waits")),
        () => (answer.value?.problem ? h("p.problem", null, answer.value.problem) : null),
        rows,
        () => (shown().length > 200 ? h("p.muted", null, `and ${shown().length - 200} more`) : null),
        () => (shown().length || !answer.value ? null : h("p.muted", null, "Nothing is under way.")),
        () => (others().length ? h("p.muted", null, `Time would bring: ${nextText(m, others()[0])}.`) : null))));
}

const isLetter = (one) => one.kind === "message" || one.kind === "datagram" || one.kind === "reply";

const nextText = (m, one) => (one.to === null || ["client", "person"].includes(one.kind) ? one.text
    : `tracker ${m.names()[one.to]} ${one.text}`);

function netHead(m, count) {
    const isAtEnd = () => m.step.value === m.run.value?.count;
    return h("div.sim-net", null,
        h("h2", null, "You are the network"),
        h("p", null, () => (isAtEnd() ? `${count} ${count === 1 ? "message waits" : "messages wait"}. Choose what is `
            + "delivered next; all promises watch." : "This is a step of the past. Go to the end to choose again.")),
        h("div.row.tight", null,
            h("button", { type: "button", id: "net-time", disabled: () => !isAtEnd(),
                onclick: () => m.whatIf("time", m.run.peek().count) }, "Let time go on"),
            h("button", { type: "button", disabled: () => !isAtEnd(),
                onclick: () => m.whatIf("auto", m.run.peek().count) }, "Work by itself again"),
            h("button", { type: "button", hidden: () => isAtEnd(), onclick: () => m.goTo(Infinity) },
                "To the end")));
}

function row(m, one, isMine) {
    const run = m.run.value;
    const name = (place) => run?.names[place] ?? place;
    const way = isLetter(one) && one.from !== undefined && one.from !== null ? partiesOf(one, name) : "";
    const isAtEnd = m.step.value === run?.count;
    const choose = () => {
        const at = run.messageWith(one.id);
        if (at >= 0) m.choose(at);
    };
    return [
        h("button.link", { type: "button", onclick: choose, disabled: !isLetter(one) },
            h("span.when", null, one.at === null || one.at === undefined ? "" : `${(one.at / 1e6).toFixed(3)} s`),
            h("span", null, h("b", null, one.name), " ", h("span.muted", null, way), " ", named(rest(one), 160))),
        isLetter(one) ? h("span.row.tight", null,
            isMine ? h("button.primary", { type: "button", "data-take": one.id, disabled: !isAtEnd,
                onclick: () => m.whatIf(`take.${one.id}`, run.count) }, "Deliver") : null,
            h("button", { type: "button", disabled: isMine && !isAtEnd, "data-lose": one.id,
                onclick: () => m.whatIf(`drop.${one.id}`) }, "Lose")) : null,
    ];
}

/** What is in it, without its name once more. */
const rest = (one) => (one.text.startsWith(one.name) ? one.text.slice(one.name.length).trim() : one.text);

function partiesOf(one, name) {
    if (one.kind === "message") return `${name(one.from)} → ${name(one.to)}`;
    if (one.kind === "reply") return `tracker ${name(one.from)} → client ${one.to}`;
    return `client ${one.from} → ${name(one.to)}`;
}
