// The worker that holds the engine: the simulator as a module of WebAssembly, with the runs that are opened in it.
//
// A run is called by its words. The module holds a few at a time; one that has been given up is opened again when it is
// asked for. Long lists go to the page as columns of numbers, which are handed over rather than copied.

const slotCount = 4;
const chunk = 5000;
/** Steps of a run that a page can hold. */
const mostSteps = 450_000;

let simulator = null;
/** The words of the runs that are open, by slot; the last that was asked for comes last in `order`. */
const open = new Map();
let order = [];

async function load() {
    const address = new URL("./simulator.wasm", import.meta.url);
    const answer = await fetch(address);
    if (!answer.ok) return { missing: answer.status };
    const [{ Simulator }, bytes] = await Promise.all([import("./simulator.mjs"), answer.arrayBuffer()]);
    simulator = await Simulator.load(bytes);
    return {
        profiles: simulator.profiles, stresses: simulator.stresses, stories: simulator.stories(),
    };
}

/** The slot in which a run is open; opens it where it is not. */
function slotOf(words) {
    for (const [slot, one] of open) if (one.words === words || one.asked === words) return used(slot);
    const slot = open.size < slotCount ? [0, 1, 2, 3].find((one) => !open.has(one)) : order[0];
    open.delete(slot);
    const info = simulator.open(slot, words);
    open.set(slot, { words: info.words, asked: words, info });
    return used(slot);
}

function used(slot) {
    order = [...order.filter((one) => one !== slot), slot];
    return slot;
}

// MARK: A run as columns

function read(words, tell) {
    const slot = slotOf(words);
    const { info } = open.get(slot);
    const count = info.steps;
    if (count > mostSteps) {
        throw new Error(`The run has ${count.toLocaleString("en")} steps, and a page shows ${
            mostSteps.toLocaleString("en")} at most. Take fewer seconds or trackers, or look at it in a terminal: ${
            info.command}`);
    }
    const run = {
        info, times: new Float64Array(count + 1), events: new Float64Array(count + 1),
        causes: new Int32Array(count + 1), trackers: new Uint32Array(count + 1), kinds: new Uint16Array(count + 1),
        lines: [], columns: [],
    };
    for (let from = 0; from <= count; from += chunk) {
        const some = simulator.steps(slot, from, Math.min(chunk, count - from + 1));
        some.time.forEach((time, at) => {
            const step = from + at;
            run.times[step] = time;
            run.events[step] = some.event[at];
            run.causes[step] = some.cause[at];
            run.trackers[step] = some.trackers[at];
            run.kinds[step] = some.kinds[at];
            run.lines.push([some.lines[at]].flat().join("\n"));
            if (some.columns[at]) run.columns.push([step, some.columns[at]]);
        });
        if (count > chunk) tell(Math.min(from + chunk, count), count);
    }
    const picture = simulator.picture(slot);
    Object.assign(run, { marks: picture.marks, periods: picture.periods, roles: picture.roles });
    run.guide = info.story ? simulator.guide(slot) : [];
    run.messages = columns(picture.messages, picture.datagrams ?? []);
    const moved = [run.times, run.events, run.causes, run.trackers, run.kinds, ...Object.values(run.messages)]
        .map((one) => one.buffer).filter(Boolean);
    return [run, moved];
}

const fates = ["arrived", "lost", "nobody", "again", "waits", "under way"];
const fateOf = (name) => Math.min(Math.max(fates.indexOf(name), 0), 4);
const topics = ["vote", "election", "join", "request", "life", "client"];
const outside = 255;

/** Messages, and clients' datagrams, in the order of their sending. A client is beside all lanes: its place is 255. */
function columns(messages, datagrams) {
    const all = messages.map((one) => ({ name: one[0], topic: one[1], from: one[2], to: one[3], rest: one.slice(4) }));
    for (const [name, client, tracker, isToTracker, ...rest] of datagrams) {
        all.push({ name, topic: "client", from: isToTracker ? outside : tracker,
            to: isToTracker ? tracker : outside, client, rest });
    }
    all.sort((a, b) => a.rest[1] - b.rest[1]);
    const count = all.length;
    const names = [];
    const numbers = new Map();
    const numberOf = (name) => {
        if (!numbers.has(name)) numbers.set(name, names.push(name) - 1);
        return numbers.get(name);
    };
    const result = {
        name: new Uint16Array(count), topic: new Uint8Array(count), from: new Uint8Array(count),
        to: new Uint8Array(count), client: new Int32Array(count), sentStep: new Int32Array(count),
        sentAt: new Float64Array(count), arrivedStep: new Int32Array(count), arrivedAt: new Float64Array(count),
        id: new Float64Array(count), fate: new Uint8Array(count), names,
    };
    all.forEach(({ name, topic, from, to, client, rest }, at) => {
        const [sentStep, sentAt, arrivedStep, arrivedAt, id, fate] = rest;
        result.name[at] = numberOf(name);
        result.topic[at] = Math.max(topics.indexOf(topic), 0);
        [result.from[at], result.to[at], result.client[at]] = [from, to, client ?? -1];
        [result.sentStep[at], result.sentAt[at], result.arrivedStep[at]] = [sentStep, sentAt, arrivedStep ?? 0];
        [result.arrivedAt[at], result.id[at], result.fate[at]] = [arrivedAt ?? NaN, id, fateOf(fate)];
    });
    return result;
}

// MARK: What the page asks

const acts = {
    load,
    read: (words, tell) => read(words, tell),
    state: (words, step) => simulator.state(slotOf(words), step),
    pending: (words, step) => simulator.pending(slotOf(words), step),
    message: (words, id) => simulator.message(slotOf(words), id),
    svg: (words, options) => simulator.svg(slotOf(words), options),
    text: (words) => simulator.text(slotOf(words)),
    pcap: (words) => simulator.pcap(slotOf(words)),
    shrink: (words) => simulator.shrink(slotOf(words)),
    shrinkNext: () => simulator.shrinkNext(),
    explore: (options) => simulator.explore(options),
    exploreChoose: (number) => simulator.exploreChoose(number),
    exploreBack: () => simulator.exploreBack(),
    exploreGoto: (state) => simulator.exploreGoto(state),
};

/** One after another, in the order in which they were asked. */
let last = Promise.resolve();

addEventListener("message", ({ data: { number, name, words } }) => {
    last = last.then(async () => {
        try {
            const tell = (done, all) => postMessage({ number, done, all });
            const answer = await acts[name](...words, tell);
            const [result, moved] = name === "read" ? answer : [answer, []];
            postMessage({ number, result }, moved);
        } catch (problem) {
            // A trap has lost all that was open.
            if (problem.cause instanceof WebAssembly.RuntimeError) {
                open.clear();
                order = [];
            }
            postMessage({ number, problem: String(problem.message ?? problem) });
        }
    });
});
