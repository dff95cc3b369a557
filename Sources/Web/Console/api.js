// The API: questions and orders to the program whose page this is, answers as values, refusals as sentences.

import { signal } from "./signals.js";

/** What was refused, or why there is no answer: `status` is 0 where nobody answered. */
export class Refusal extends Error {
    constructor(status, words, tag = null, problems = []) {
        super(words);
        this.status = status;
        this.tag = tag;
        this.problems = problems;
    }
}

/** The parts of the API that there are. */
const resources = signal(new Set());
let largest = Infinity;

/** Whether there is somebody to log in as; told by the first 401. */
export const mustLogIn = signal(false);

const patience = 10_000;
let server = "the tracker";
let token = null;

/** Says who answers here, for the sentences that tell of it. */
export const nameServer = (name) => (server = name);

/** Has a token go with all that is asked from now on; null for none. */
export const showToken = (text) => (token = text);

const withToken = (headers) => (token ? { ...headers, Authorization: `Bearer ${token}` } : headers);

/** Whether a token goes along. */
export const isTokenShown = () => token !== null;

/** Asks `/api/v1/PATH`. Parameters that are null or empty are left out. */
export async function get(path, parameters = {}, { within = patience, cancel } = {}) {
    return (await call("GET", address(path, parameters), { within, cancel })).body;
}

/** As `get`, with the tag by which a change says what it was made from. */
export const getTagged = (path) => call("GET", address(path, {}), {});

/** Gives an order with a JSON body. */
export async function order(method, path, body, headers = {}) {
    const content = body === undefined ? {} : { body: JSON.stringify(body), type: "application/json" };
    return (await call(method, address(path, {}), { ...content, headers, within: 60_000 })).body;
}

/** Sends a file, with `progress(share)` as it goes. fetch cannot tell how far it is. */
export function upload(path, file, progress) {
    return new Promise((done, failed) => {
        const request = new XMLHttpRequest();
        request.open("POST", address(path, {}));
        for (const [name, value] of Object.entries(withToken({ "Content-Type": "application/x-bittorrent" }))) {
            request.setRequestHeader(name, value);
        }
        request.upload.onprogress = (event) => event.lengthComputable && progress(event.loaded / event.total);
        request.onerror = () => failed(new Refusal(0, "the connection broke off"));
        request.onload = () => {
            const body = parsed(request.responseText);
            if (request.status < 300) done(body);
            else failed(refusal(request.status, body));
        };
        request.send(file);
    });
}

/** A file, as what the browser can save. */
export async function file(path) {
    const limit = AbortSignal.timeout(60_000);
    const answer = await answerOf("GET", address(path, {}), {}, limit);
    if (!answer.ok) throw refusal(answer.status, parsed(await answer.text()));
    return heard(() => answer.blob(), null, limit);
}

/** The body of an answer that goes on and on, which are the events; only its beginning is waited for. */
export async function endless(path, parameters, cancel) {
    const limit = new AbortController();
    const timer = setTimeout(() => limit.abort(), patience);
    try {
        const answer = await answerOf("GET", address(path, parameters), { cancel }, limit.signal);
        if (!answer.ok) throw refusal(answer.status, parsed(await answer.text()));
        return answer.body;
    } finally {
        clearTimeout(timer);
    }
}

/** Learns which parts of the API there are, and how much it takes. */
export async function learnResources() {
    const told = await get("", {}, { within: 3000 });
    resources.value = new Set(told.resources ?? []);
    largest = told.torrentFileByteCount ?? Infinity;
}

/** Bytes of a torrent file that are taken at most. */
export const largestTorrentFile = () => largest;

export const has = (name) => resources.value.has(name);

function address(path, parameters) {
    const query = new URLSearchParams(
        Object.entries(parameters).filter(([, value]) => value !== null && value !== undefined && value !== ""));
    const text = query.toString();
    return `/api/v1/${path}${text ? `?${text}` : ""}`;
}

/** A part of a path: names may hold anything. */
export const part = (text) => encodeURIComponent(text);

async function call(method, url, options) {
    const limit = AbortSignal.timeout(options.within ?? patience);
    const answer = await answerOf(method, url, options, limit);
    const text = await heard(() => answer.text(), options.cancel, limit);
    const content = parsed(text);
    if (!answer.ok) throw refusal(answer.status, content, answer.headers.get("ETag"));
    return { body: content, tag: answer.headers.get("ETag") };
}

function answerOf(method, url, { body, type, headers = {}, cancel }, limit) {
    return heard(() => fetch(url, {
        method, body, cache: "no-store", credentials: "same-origin",
        headers: withToken(type ? { "Content-Type": type, ...headers } : headers),
        signal: cancel ? AbortSignal.any([cancel, limit]) : limit,
    }), cancel, limit);
}

/** What comes over the network, or a sentence that says why it does not. */
async function heard(work, cancel, limit) {
    try {
        return await work();
    } catch (problem) {
        if (cancel?.aborted) throw problem;
        throw new Refusal(0, limit.aborted ? `${server} does not answer in time` : `${server} cannot be reached`);
    }
}

function refusal(status, body, tag) {
    if (status === 401) mustLogIn.value = true;
    return new Refusal(status, body?.error ?? `${server} answered with status ${status}`, tag, body?.problems);
}

function parsed(text) {
    try {
        return text ? JSON.parse(text) : null;
    } catch {
        return null;
    }
}
