// The state of the cluster in one sentence of plain words, and how good it is. No page, no clock: the state goes in.

import { count, counted, listed, since } from "./format.js";

/** Entries beyond which a tracker is said to be behind: one that keeps up is some hundreds behind while it speaks. */
export const behind = 1000;

/** Whether this tracker hears no other, on an operator's word or because the bus is lost. */
export const isCutOff = (state) =>
    state.status.cluster.isFenced || (state.faults?.faults ?? []).some((one) => one.from === "bus");

/** Whether a tracker answers clients, as far as its role tells. */
const serves = (one) => (one.role === "master" || one.role === "slave") && one.isWhole;

/**
 * @param state as the API tells it.
 * @param past the transitions that are known, oldest first.
 * @returns { text, tone }: tone is good, warn or bad.
 */
export function sentence(state, past = []) {
    const { node, cluster } = state.status;
    const cut = (from) => state.faults?.faults?.find((one) => one.from === from);
    if (node.role === "stopped" || node.role === "draining") {
        return bad(`This tracker ${node.role === "stopped" ? "is stopped" : "is stopping"} and answers nobody.`);
    }
    if (node.role === "failed") return bad("This tracker has lost its disk and answers nobody.");
    if (node.role === "restoring") return warn("This tracker reads its record and answers nobody so far.");
    if (isCutOff(state)) return fenced(cut("bus"));
    if (cluster.mode === "alone") {
        const told = cut("peers");
        if (told) return bad(`This tracker is cut off from its peers since ${since(told.since)} and answers nobody.`);
        if (!cluster.isServing) return bad("This tracker is alone and answers nobody.");
        return good(`One tracker serves, alone; it knows ${counted(node.torrents, "swarm")}.`, state);
    }
    return ofCluster(state, past, cut("peers"));
}

function fenced(told) {
    const when = told ? ` since ${since(told.since)}, on an operator’s word,` : "";
    return bad(`This tracker is cut off from the bus${when} and answers nobody; what it shows of the others is what it knew.`);
}

function ofCluster(state, past, peers) {
    const { node, cluster } = state.status;
    if (!cluster.master) {
        return bad(node.role === "newcomer"
            ? "This tracker looks for the cluster and answers nobody so far."
            : "No tracker is master: an election is under way, and nobody is answered.");
    }
    const all = cluster.trackers;
    const serving = all.filter(serves);
    const down = all.filter((one) => one.role === "down");
    const parts = [serving.length === all.length
        ? `${counted(all.length, "tracker")} ${all.length === 1 ? "serves" : "serve"}`
        : `${serving.length} of ${counted(all.length, "tracker")} serve`];
    parts.push(`${cluster.master} is master${masterSince(cluster.master, past)}`);
    if (down.length) parts.push(silent(down));
    const joining = all.filter((one) => one.role !== "down" && !serves(one));
    if (joining.length) parts.push(`${listed(joining.map((one) => one.id))} ${joining.length === 1 ? "is" : "are"} joining`);
    const other = all.filter((one) => one.agreement === "different");
    if (other.length) parts.push(`${listed(other.map((one) => one.id))} ${other.length === 1 ? "holds" : "hold"} another history`);
    const late = all.filter((one) => one.role !== "down" && one.lag > behind);
    if (late.length) parts.push(...late.map((one) => `${one.id} is ${count(one.lag)} entries behind`));
    else if (!down.length && !joining.length && !other.length) parts.push("nothing is behind");
    if (peers) parts.push(`this one is cut off from its peers since ${since(peers.since)}`);
    const text = `${parts.join("; ")}.`;
    if (other.length || !cluster.isServing) return bad(text);
    return down.length || joining.length || late.length || peers ? warn(text) : good(text, state);
}

function silent(down) {
    return `${listed(down.map((one) => one.id))} ${down.length === 1 ? "is" : "are"} down`;
}

function masterSince(id, past) {
    for (let at = past.length - 1; at >= 0; at -= 1) {
        const one = past[at];
        if (one.kind === "master") return one.tracker === id ? ` since ${since(one.at)}` : "";
    }
    return "";
}

const bad = (text) => ({ text, tone: "bad" });
const warn = (text) => ({ text, tone: "warn" });

/** Good, unless something is found that is not. */
function good(text, state) {
    const found = state.status.cluster.findings ?? [];
    return { text, tone: found.some((one) => one.isSilence) ? "bad" : found.length ? "warn" : "good" };
}
