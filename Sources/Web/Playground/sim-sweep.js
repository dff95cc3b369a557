// Sweeps: very many seeds, on all cores, with failures as they come.

import { tell } from "./dialog.js";
import { h, list, named } from "./dom.js";
import { bytes } from "./format.js";
import { look, route } from "./route.js";
import { onEnd, signal } from "./signals.js";
import { field, option } from "./sim-setup.js";
import { joined, sweepCommand } from "./sim-words.js";
import { bar, copyButton, heading } from "./widgets.js";

/** Seeds that a worker is given at once: few, so that failures come soon. */
const batch = 8;
const mostSeeds = 1_000_000;
const mostFailures = 500;
const mask = (1n << 64n) - 1n;

/** SplitMix64's finaliser, as Sources/Primitives/RandomStream.swift has it. */
function mixed(value) {
    let z = value;
    z = ((z ^ (z >> 30n)) * 0xbf58_476d_1ce4_e5b9n) & mask;
    z = ((z ^ (z >> 27n)) * 0x94d0_49bb_1331_11ebn) & mask;
    return z ^ (z >> 31n);
}

/** A hash over all runs in the order of their seeds, as `tracker simulate` makes it. */
class Tally {
    #waiting = new Map();
    value = 0x5377_6565_7048_6173n;

    constructor(first) {
        this.next = first;
    }

    add(first, hashes) {
        this.#waiting.set(first, hashes);
        while (this.#waiting.has(this.next)) {
            const some = this.#waiting.get(this.next);
            this.#waiting.delete(this.next);
            for (const one of some) this.value = (mixed(this.value ^ one) + 0x9e37_79b9_7f4a_7c15n) & mask;
            this.next += BigInt(some.length);
        }
    }
}

/** Runs a sweep. `told` hears of each batch; returns what stops it. */
function sweep({ profile, stress, first, count }, told, over) {
    const last = first + BigInt(count);
    let next = first;
    let done = 0;
    const cores = Math.min(navigator.hardwareConcurrency || 2, 32);
    const workers = Array.from({ length: Math.min(cores, Math.ceil(count / batch)) }, () =>
        new Worker(new URL("./sim-sweeper.js", import.meta.url), { type: "module", name: "sweep" }));
    const stop = () => workers.forEach((one) => one.terminate());
    const give = (worker) => {
        if (next >= last) return;
        const some = Math.min(batch, Number(last - next));
        worker.postMessage({ profile, stress, first: next, count: some });
        next += BigInt(some);
    };
    for (const worker of workers) {
        worker.addEventListener("message", ({ data }) => {
            if (data.problem) {
                stop();
                return over(data.problem);
            }
            done += data.count;
            told(data, workers.length);
            if (done >= count) {
                stop();
                over(null);
            } else {
                give(worker);
            }
        });
        worker.addEventListener("error", (event) => {
            stop();
            over(event.message || "A worker was refused.");
        });
        give(worker);
    }
    return stop;
}

const nothing = { phase: "ready", done: 0, count: 0, events: 0, failures: [], failed: 0 };

export function sweepPage(m) {
    const about = m.about.peek();
    const query = route.peek().query;
    const state = signal(nothing);
    let stop = () => {};
    onEnd(() => stop());
    const profile = h("select", { name: "profile" }, about.profiles.map((one) =>
        option(one, one, one === (query.profile ?? "paxos"))));
    const stress = h("select", { name: "stress" }, option("", "none", !query.stress),
        about.stresses.map((one) => option(one, one, one === query.stress)));
    const first = h("input.sim-seed", { name: "first", type: "text", inputmode: "numeric", pattern: "[0-9]{1,19}",
        required: true, value: query.first ?? "1", maxlength: "19" });
    const count = h("input", { name: "count", type: "number", min: "1", max: String(mostSeeds), required: true,
        value: query.count ?? "500" });
    const asked = () => ({ profile: profile.value, stress: stress.value, first: BigInt(first.value),
        count: Math.min(Math.max(Number(count.value) || 1, 1), mostSeeds) });

    function begin() {
        stop();
        const what = asked();
        look({ profile: what.profile, stress: what.stress || null, first: String(what.first), count: what.count });
        const tally = new Tally(what.first);
        const began = performance.now();
        let failures = [];
        state.value = { ...nothing, phase: "running", what, count: what.count };
        stop = sweep(what, (data, cores) => {
            tally.add(data.first, data.hashes);
            failures = [...failures, ...data.failures].sort((a, b) => Number(BigInt(a.seed) - BigInt(b.seed)))
                .slice(0, mostFailures);
            const before = state.peek();
            state.value = { ...before, done: before.done + data.count, events: before.events + data.events, failures,
                failed: before.failed + data.failures.length, cores, seconds: (performance.now() - began) / 1000,
                memory: Math.max(before.memory ?? 0, data.memory ?? 0) };
        }, (problem) => {
            if (problem) tell(`The sweep has stopped: ${problem}`, "bad");
            state.value = { ...state.peek(), phase: problem ? "stopped" : "done",
                hash: problem ? null : tally.value.toString(16).padStart(16, "0") };
        });
    }
    const halt = () => {
        stop();
        state.value = { ...state.peek(), phase: "stopped" };
    };
    const isRunning = () => state.value.phase === "running";
    return h("div", null, heading("Sweep", copyButton(() => location.href, "Link")),
        h("p.muted", null, "Every seed is another run of the same logic, with other faults. All promises watch each of "
            + "them; a seed that breaks one can be opened, and sent to somebody as a link."),
        h("form.sim-setup", {
            "aria-label": "What is swept",
            onsubmit: (event) => {
                event.preventDefault();
                begin();
            },
        }, field("Profile", profile), field("Stress", stress), field("First seed", first), field("Seeds", count),
        h("button.primary", { type: "submit", id: "sweep", hidden: isRunning }, "Sweep"),
        h("button", { type: "button", id: "stop", hidden: () => !isRunning(), onclick: halt }, "Stop")),
        () => (state.value.phase === "ready" ? null : progress(state.value)),
        h("section", { hidden: () => !state.value.failed }, h("h2", null, "Seeds that break a promise"),
            list(h("ul.sim-failures", null), () => state.value.failures, (one) => one.seed, (one) =>
                h("li", null, h("a", { href: () => failureLink(state.peek().what, one.value) },
                    h("b", null, `seed ${one.peek().seed}`), " ", named(one.peek().violations[0], 300)))),
            h("p.muted", null, () => (state.value.failed > mostFailures
                ? `${state.value.failed} in all; the first ${mostFailures} are shown.` : ""))));
}

const failureLink = (what, one) => `#sim?${joined([["seed", one.seed], ["profile", what.profile],
    ["stress", what.stress]])}`;

function progress(state) {
    const rate = state.seconds ? state.done / state.seconds : 0;
    const command = sweepCommand(state.what, state.what.first, state.what.first + BigInt(state.what.count - 1));
    const words = { running: "Running …", done: "Done.", stopped: "Stopped." }[state.phase];
    return h("section.card", null,
        h("p.sim-sweep-words", { role: "status" }, h("b", null, words), " ", `${state.done.toLocaleString("en")} of ${
            state.count.toLocaleString("en")} seeds, `, h("b", { class: { "bad-text": state.failed > 0 } },
            state.failed === 0 ? "all promises hold" : `${state.failed} ${state.failed === 1 ? "breaks" : "break"
            } a promise`), "."),
        bar(state.done / state.count, `${state.done} of ${state.count}`),
        h("p.muted", null, `${rate.toFixed(0)} scenarios a second on ${state.cores ?? "…"} ${
            state.cores === 1 ? "thread" : "threads"} · ${state.events.toLocaleString("en")} steps`
            + (state.memory ? ` · ${bytes(state.memory)} of memory each` : "")),
        state.hash ? h("p", null, "Trace hash ", h("code", { id: "sweep-hash" }, state.hash),
            h("span.muted", null, ", as this says:")) : null,
        h("p.row", null, h("code.sim-command", null, command), copyButton(() => command, "Command")));
}
