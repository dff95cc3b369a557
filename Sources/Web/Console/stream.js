// What the tracker tells of itself, once a second, and the connection that brings it.
//
//     starting ──▶ live ◀──▶ lost        live ◀──▶ paused (nobody has looked at the page for a while)
//         └──────────┴──────────┴──▶ login (it asks who is there)
//
// A lost connection is noticed at once where it breaks, else after SILENCE without a word (the state comes once a
// second). It is tried again, at first after half a second, then ever more slowly. Where the tracker takes no more
// readers of its stream, it is asked for its state.

import { Refusal, get, has, learnResources, mustLogIn } from "./api.js";
import { span } from "./format.js";
import { isCutOff } from "./sentence.js";
import { computed, signal } from "./signals.js";

/** The last state that was told; null before the first. */
export const state = signal(null);
/** { phase, since, failures }: since when (this machine's clock) it is so, and how often it was tried in vain. */
export const link = signal({ phase: "starting", since: Date.now(), failures: 0 });
/** When the last state came, by this machine's clock. */
const heardAt = signal(0);
/** The last ten minutes, a sample a second. */
export const samples = signal([]);
/** Counts up with each batch of transitions. */
export const transitionCount = signal(0);
/** A second that passes. */
export const tick = signal(0);

export const isLive = computed(() => link.value.phase === "live");
/** Seconds since the state was told, where it is no longer live. */
export const age = computed(() => {
    tick.value;
    return isLive.value || !heardAt.value ? 0 : (Date.now() - heardAt.value) / 1000;
});

/** Says how old what is shown is: where the tracker is not heard here, or hears no other. */
export function asOf() {
    if (age.value > 0) return `as of ${span(age.value)} ago`;
    if (!state.value || !isCutOff(state.value)) return "";
    const { trackers } = state.value.status.cluster;
    const heard = Math.min(...trackers.filter((one) => !one.isThis).map((one) => one.silentSeconds));
    return Number.isFinite(heard) ? `The others as of ${span(heard)} ago.` : "";
}

const silence = 3000;
const pollPause = 2000;
const pauses = [500, 1000, 2000, 3000, 5000];
const unseen = 60_000;
const keptSamples = 600;
const keptTransitions = 10_000;

const ring = [];
const byNumber = new Map();
let fresh = [];
let lastID = null;
let source = null;
let retry = null;
let hiding = null;
let isConnecting = false;
let difference = 0;

/** The tracker's transitions, oldest first; read `transitionCount` to follow them. */
export const transitions = () => ring;
export const transition = (number) => byNumber.get(number);

/** The tracker's clock, in milliseconds. */
export const trackerNow = () => Date.now() + difference;

export const tracker = () => state.value?.status.cluster.trackers.find((one) => one.isThis);

const ranks = ["viewer", "uploader", "operator", "admin"];

/** Whether the user may do what asks for a role. Where nobody has to log in, anybody may. */
export function may(role) {
    if (!state.value) return false;
    const { login } = state.value;
    if (!login?.user) return !login?.required;
    return ranks.indexOf(login.user.role) >= ranks.indexOf(role);
}

/** Connects now: at the start, after a login, when somebody asks for it. */
export async function connect() {
    clearTimeout(retry);
    if (isConnecting) return;
    isConnecting = true;
    close();
    try {
        await learnResources();
        const first = await get("state", {}, { within: silence });
        mustLogIn.value = false;
        const past = has("history") ? (await get("history", {}, { within: silence })).samples : [];
        samples.value = past.slice(-keptSamples);
        accept(first);
        listenToEvents();
    } catch (problem) {
        if (problem instanceof Refusal && problem.status === 401) enter("login");
        else failed();
    } finally {
        isConnecting = false;
    }
}

function listenToEvents() {
    let isOpen = false;
    source = new EventSource(`/api/v1/events${lastID ? `?after=${encodeURIComponent(lastID)}` : ""}`);
    source.addEventListener("state", (event) => take(event, accept));
    source.addEventListener("transition", (event) => take(event, (told) => note(told, event.lastEventId)));
    source.addEventListener("open", () => { isOpen = true; });
    source.addEventListener("error", () => {
        const isRefused = !isOpen && source?.readyState === EventSource.CLOSED;
        close();
        if (isRefused) poll();
        else failed();
    });
}

/** The tracker takes no more readers: its state is asked for, and every fifth time the stream is tried again. */
async function poll(times = 1) {
    try {
        const told = await get("state", {}, { within: silence });
        if (source || isConnecting || link.peek().phase === "paused") return;
        accept(told);
    } catch (problem) {
        if (problem instanceof Refusal && problem.status === 401) enter("login");
        else failed();
        return;
    }
    clearTimeout(retry);
    retry = setTimeout(() => (times % 5 ? poll(times + 1) : listenToEvents()), pollPause);
}

/** What is not as it should be is left out: a page that shows the rest is better than none. */
function take(event, use) {
    let told;
    try {
        told = JSON.parse(event.data);
    } catch {
        return;
    }
    use(told);
}

function accept(told) {
    difference = Date.parse(told.now) - Date.now();
    heardAt.value = Date.now();
    enter("live");
    state.value = told;
    const all = samples.peek();
    if (told.sample && told.sample.at !== all.at(-1)?.at) {
        samples.value = [...all.slice(1 - keptSamples), told.sample];
    }
}

function note(told, id) {
    // The ring of a tracker that was started again begins anew.
    if (lastID && incarnation(id) !== incarnation(lastID)) {
        ring.length = 0;
        byNumber.clear();
        fresh = [];
    }
    lastID = id;
    if (fresh.push(told) === 1) setTimeout(keep, 50);
}

const incarnation = (id) => id.split("-")[0];

function keep() {
    for (const told of fresh) {
        if (byNumber.has(told.number)) continue;
        told.time = Date.parse(told.at);
        byNumber.set(told.number, told);
        ring.push(told);
    }
    fresh = [];
    for (const old of ring.splice(0, Math.max(ring.length - keptTransitions, 0))) byNumber.delete(old.number);
    transitionCount.value += 1;
}

function enter(phase, failures = 0) {
    const now = link.peek();
    if (now.phase === phase && now.failures === failures) return;
    link.value = { phase, since: now.phase === phase ? now.since : Date.now(), failures };
}

function failed() {
    const failures = link.peek().failures + 1;
    enter("lost", failures);
    clearTimeout(retry);
    retry = setTimeout(connect, pauses[Math.min(failures, pauses.length) - 1]);
}

function close() {
    source?.close();
    source = null;
}

setInterval(() => {
    tick.value += 1;
    if (link.peek().phase === "live" && Date.now() - heardAt.peek() > silence) {
        close();
        failed();
    }
}, 1000);

// A browser opens six connections to a tracker at most: a page that nobody looks at gives its own back.
document.addEventListener("visibilitychange", () => {
    clearTimeout(hiding);
    if (document.hidden) {
        hiding = setTimeout(() => {
            if (link.peek().phase !== "live") return;
            close();
            clearTimeout(retry);
            enter("paused");
        }, unseen);
    } else if (link.peek().phase === "paused") {
        connect();
    }
});

addEventListener("online", () => link.peek().phase === "lost" && connect());
