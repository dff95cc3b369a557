// What the peer tells, once a second, and the connection that brings it.
//
//     starting ──▶ live ◀──▶ lost        live ◀──▶ paused (nobody has looked at the page for a while)
//         └──────────┴──────────┴──▶ login (it asks for its token)
//
// All transfers come at first, after that only those that have changed. The stream is read by fetch, not by an
// EventSource, which can show no token and does not tell why it is refused. A lost connection is noticed at once where
// it breaks, else after `silence` without a word. It is tried again, at first after half a second, then ever more
// slowly. Where the peer takes no more readers, it is asked every two seconds instead.

import { Refusal, endless, get, learnResources, mustLogIn, part } from "/console/api.js";
import { computed, onEnd, signal } from "/console/signals.js";

/** Hash → transfer; null before the first state. It is another map whenever one of them has changed. */
export const transfers = signal(null);
/** Of all transfers together. */
export const totals = signal(null);
export const settings = signal(null);
export const creations = signal([]);
/** All about the transfer that is watched; null until it is told. */
export const detail = signal(null);

/** { phase, since, failures }: since when (this machine's clock) it is so, and how often it was tried in vain. */
export const link = signal({ phase: "starting", since: Date.now(), failures: 0 });
const heardAt = signal(0);
/** A second that passes. */
export const tick = signal(0);

export const isLive = computed(() => link.value.phase === "live");
/** Seconds since the state was told, where it is no longer live. */
export const age = computed(() => {
    tick.value;
    return isLive.value || !heardAt.value ? 0 : (Date.now() - heardAt.value) / 1000;
});

const silence = 5000;
const pollPause = 2000;
const pollsPerTry = 5;
const pauses = [500, 1000, 2000, 3000, 5000];
const unseen = 600_000;
const keptSamples = 300;

let difference = 0;
/** The peer's clock, in milliseconds. */
export const peerNow = () => Date.now() + difference;

let watched = null;
let reading = null;
let retry = null;
let hiding = null;

/** Has all about one transfer told, too, until the page ends. */
export function watch(hash) {
    watched = hash;
    detail.value = null;
    if (link.peek().phase === "live") connect();
    onEnd(() => {
        if (watched !== hash) return;
        watched = null;
        if (link.peek().phase === "live") queueMicrotask(() => watched === null && connect());
    });
}

// MARK: The connection

/** Connects now: at the start, with another token, when somebody asks for it. */
export async function connect() {
    clearTimeout(retry);
    reading?.abort();
    const own = new AbortController();
    reading = own;
    try {
        if (link.peek().phase !== "live") await learnResources();
        const body = await endless("events", { transfer: watched }, own.signal);
        if (own !== reading) return void body.cancel();
        mustLogIn.value = false;
        await read(body, own);
        throw new Refusal(0, "the stream has ended");
    } catch (problem) {
        // Another one has taken its place.
        if (own !== reading) return;
        if (problem.status === 401) enter("login");
        else if (problem.status === 404 && watched) unwatch();
        else if (problem.status === 503 || problem.status === 429) poll(own);
        else failed();
    }
}

/** There is no such transfer: all the others are told without it. */
function unwatch() {
    watched = null;
    connect();
}

/** Reads events until there are no more. */
async function read(body, own) {
    const reader = body.pipeThrough(new TextDecoderStream()).getReader();
    let text = "";
    let isFirst = true;
    for (;;) {
        const { value, done } = await reader.read();
        if (done || own !== reading) return;
        text += value;
        const parts = text.split(/\r?\n\r?\n/);
        text = parts.pop();
        for (const one of parts) {
            const told = parsed(one);
            if (told?.kind === "state") {
                accept(told.content, isFirst);
                isFirst = false;
            } else if (told?.kind === "detail" && told.content.hash === watched) {
                detail.value = kept(told.content);
            }
        }
    }
}

/** An event of the stream; null for a comment, and for what cannot be read: the next one may be. */
function parsed(text) {
    let kind = "message";
    const data = [];
    for (const line of text.split(/\r?\n/)) {
        if (line.startsWith("event:")) kind = line.slice(6).trim();
        else if (line.startsWith("data:")) data.push(line.slice(5));
    }
    try {
        return data.length ? { kind, content: JSON.parse(data.join("\n")) } : null;
    } catch {
        return null;
    }
}

async function poll(own, times = 1) {
    try {
        const [all, made, set, one] = await Promise.all([get("transfers"), get("creations"), get("settings"),
            watched ? get(`transfers/${part(watched)}`).catch(() => null) : null]);
        if (own !== reading || link.peek().phase === "paused") return;
        mustLogIn.value = false;
        accept({ at: peerNow(), ...all, ...made, settings: set }, true);
        if (one && one.hash === watched) detail.value = kept(one);
        retry = setTimeout(() => (times % pollsPerTry ? poll(own, times + 1) : connect()), pollPause);
    } catch (problem) {
        if (own !== reading) return;
        if (problem.status === 401) enter("login");
        else failed();
    }
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
    const own = reading;
    reading = null;
    own?.abort();
}

setInterval(() => {
    tick.value += 1;
    if (link.peek().phase === "live" && Date.now() - heardAt.peek() > silence) {
        close();
        failed();
    }
}, 1000);

// The peer has some places for readers, and a browser opens six connections to it: a page that nobody looks at for long
// gives its own back.
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

// MARK: What is told

function accept(told, isWhole) {
    if (Number.isFinite(told.at)) difference = told.at - Date.now();
    heardAt.value = Date.now();
    const changed = told.transfers ?? [];
    const gone = told.gone ?? [];
    const before = transfers.peek();
    if (isWhole || changed.length || gone.length || !before) {
        const all = new Map(isWhole || !before ? [] : before);
        for (const one of changed) all.set(one.hash, one);
        for (const hash of gone) all.delete(hash);
        transfers.value = all;
    }
    creations.value = told.creations ?? [];
    totals.value = told.totals ?? null;
    if (told.settings) settings.value = told.settings;
    keepRates(told.at ?? Date.now());
    enter("live");
}

/** Takes in what an order has answered, before the stream tells it. */
export function learn(transfer) {
    if (transfer?.hash && transfers.peek()) transfers.value = new Map(transfers.peek()).set(transfer.hash, transfer);
}

/** Forgets one that was removed, before the stream tells it. */
export function forget(hash) {
    const all = new Map(transfers.peek() ?? []);
    if (all.delete(hash)) transfers.value = all;
}

/** Parts of the detail that are as they were stay the same values, so that what shows them is not drawn anew. */
function kept(next) {
    const before = detail.peek();
    if (before?.hash !== next.hash) return next;
    const old = new Map(before.files?.map((one) => [one.index, one]));
    const files = next.files?.map((one) => {
        const was = old.get(one.index);
        const isSame = was && was.verified === one.verified && was.isWanted === one.isWanted && was.path === one.path;
        return isSame ? was : one;
    });
    return { ...next, files };
}

// MARK: Rates

/** Hash → [[time, down, up], …], of those that have moved lately; "" is all of them together. */
const rates = new Map();
/** Counts up with each second of them. */
export const rateCount = signal(0);

export const ratesOf = (hash) => rates.get(hash) ?? [];

function keepRates(at) {
    const all = transfers.peek();
    for (const hash of rates.keys()) if (hash && !all.has(hash)) rates.delete(hash);
    keepRate("", at, totals.peek());
    for (const one of all.values()) keepRate(one.hash, at, one);
    rateCount.value += 1;
}

function keepRate(hash, at, one) {
    if (!one) return;
    let all = rates.get(hash);
    if (!all && !one.downRate && !one.upRate && hash !== watched) return;
    if (!all) rates.set(hash, (all = []));
    if (all.at(-1)?.[0] >= at) return;
    all.push([at, one.downRate, one.upRate]);
    if (all.length > keptSamples) all.shift();
    if (hash && hash !== watched && all.every(([, down, up]) => !down && !up)) rates.delete(hash);
}
