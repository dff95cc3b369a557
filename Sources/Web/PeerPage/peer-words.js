// What a transfer does, and what it waits for, in plain words. No page, no clock: the transfer goes in.

import { bytes, count, counted, nothing, span } from "/console/format.js";

/** 4.2 MiB/s */
export const rate = (n) => (Number.isFinite(n) ? `${bytes(n)}/s` : nothing);

/** As `rate`; nothing at all where nothing moves. */
export const rateIfAny = (n) => (n > 0 ? rate(n) : "");

/** 42.1 %: what is not whole is never said to be. */
export function percent(share) {
    if (!Number.isFinite(share)) return nothing;
    if (share >= 1) return "100 %";
    return `${(Math.floor(Math.max(share, 0) * 1000) / 10).toFixed(1)} %`;
}

export function ratio(n) {
    if (!Number.isFinite(n)) return nothing;
    return n >= 100 ? count(n) : n.toFixed(2);
}

/** Kinds of states, as the list is sorted into: each with its states. */
export const kinds = [
    ["downloading", "Downloading", ["downloading", "metadata"]],
    ["waiting", "Waiting", ["waitingForPeers", "waitingForDisk"]],
    ["seeding", "Seeding", ["seeding"]],
    ["checking", "Checking", ["checking", "verifying"]],
    ["paused", "Paused", ["paused", "stopping"]],
    ["failed", "Failed", ["failed"]],
];

const kindOfState = new Map(kinds.flatMap(([kind, , states]) => states.map((state) => [state, kind])));

export const kindOf = (transfer) => kindOfState.get(transfer.state) ?? "waiting";

/** Whether pausing it makes sense; else resuming does. */
export const runs = ({ state }) => state !== "paused" && state !== "stopping" && state !== "failed";

const isWhole = (transfer) => transfer.missing === 0 || transfer.progress >= 1;

const peersOf = (transfer) => (transfer.knownPeers > transfer.peers
    ? `${count(transfer.peers)} of ${counted(transfer.knownPeers, "peer")}` : counted(transfer.peers, "peer"));

const tones = { downloading: "accent", seeding: "good", waiting: "warn", checking: "plain", paused: "plain", failed: "bad" };

/**
 * @returns { tone, badge, text }: a word for the state, and what goes on beside it. `text` holds words of strangers, such
 *     as a tracker's: show it with `named`.
 */
export function words(transfer) {
    const tone = tones[kindOf(transfer)];
    const { problem, reason } = transfer;
    const or = (other) => problem || other;
    switch (transfer.state) {
    case "checking": return { tone, badge: "Checking", text: `reads what is on the disk: ${percent(transfer.progress)}` };
    case "verifying": return { tone, badge: "Verifying", text: `reads everything back: ${percent(transfer.progress)}` };
    case "metadata": return { tone, badge: "Getting the torrent", text: or(transfer.peers
        ? `asks ${counted(transfer.peers, "peer")} what the magnet link names` : "looks for peers that have it") };
    case "downloading": return { tone, badge: "Downloading", text: or(`from ${peersOf(transfer)}`) };
    case "seeding": return { tone, badge: "Seeding", text: or(transfer.upRate > 0 ? `to ${peersOf(transfer)}`
        : transfer.peers === 1 ? "its one peer wants nothing now"
            : transfer.peers ? `its ${count(transfer.peers)} peers want nothing now` : "nobody asks for it now") };
    case "paused": return { tone, badge: "Paused", text: or(isWhole(transfer) ? "all of it is there"
        : Number.isFinite(transfer.missing) ? `${bytes(transfer.missing)} to go` : "") };
    case "waitingForPeers": return { tone, badge: "Waiting for peers", text: or("nobody is there who has what is missing") };
    case "waitingForDisk": return { tone, badge: "Waiting for the disk", text: reason || or("it cannot be written") };
    case "failed": return { tone, badge: "Failed", text: reason || or("no reason is told") };
    case "stopping": return { tone, badge: "Stopping", text: "says goodbye to trackers and peers" };
    default: return { tone: "plain", badge: transfer.state, text: problem ?? "" };
    }
}

/** The whole of it in one sentence. */
export function sentence(transfer) {
    const { badge, text } = words(transfer);
    const rest = [text];
    if (transfer.state === "downloading" && transfer.downRate > 0) rest.push(` at ${rate(transfer.downRate)}`);
    if (transfer.state === "seeding" && transfer.upRate > 0) rest.push(` at ${rate(transfer.upRate)}`);
    const isTold = transfer.state === "downloading" && Number.isFinite(transfer.secondsLeft);
    const end = isTold ? `; done in about ${span(transfer.secondsLeft)}` : "";
    const all = text ? `${badge}${joint(transfer, text)}${rest.join("")}${end}` : badge;
    return /[.!?…]$/.test(all) ? all : `${all}.`;
}

/** "Downloading from …", but "Paused: 3 MiB to go". */
const joint = (transfer, text) => (/^(from|to) /.test(text) && !transfer.problem ? " " : ": ");

/** How far it is: "1.2 of 4.4 GiB", "size not known yet". */
export function far(transfer) {
    if (!Number.isFinite(transfer.byteCount)) return "size not known yet";
    // While it is checked, the progress is that of the check.
    const isChecked = kindOf(transfer) === "checking";
    if (isChecked || !(transfer.missing > 0)) return bytes(transfer.byteCount);
    // Of what is wanted, which may be less than all of it.
    const share = Math.min(Math.max(transfer.progress, 0), 0.999_999);
    const wanted = transfer.missing / (1 - share);
    return `${bytes(wanted - transfer.missing)} of ${bytes(wanted)}`;
}

/** What goes on between a peer and us, in words. */
export function dealings({ flags = {}, progress }) {
    const all = [];
    if (flags.weWant) all.push(flags.theyChoke ? "lets us wait" : "sends to us");
    if (flags.theyWant) all.push(flags.weChoke ? "waits for us" : "gets from us");
    if (!all.length) all.push(progress >= 1 ? "has all, we want nothing" : "nothing to give or take now");
    return all.join(", ");
}
