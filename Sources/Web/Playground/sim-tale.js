// Tells a run in sentences: what a person would say of it, one sentence a moment. Pure.
//
// What happens to trackers together is one sentence; what happens all the time, such as commits, is told once for each
// master. So a story is some ten sentences, and a run with many faults some hundred.

import { kindBit } from "./sim-run.js";

/** Sentences of one run, at most. */
const mostSentences = 300;
/** Things of one kind so near to each other, in microseconds, are told together. */
const near = 1_500_000;

/** "1, 2 and 3" */
const listed = (names) => (names.length < 2 ? names.join("") : `${names.slice(0, -1).join(", ")} and ${names.at(-1)}`);

const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);

const alone = "Nobody knows of anybody, and no client is answered.";

/** What may be told together: one sentence for all trackers of a group. */
const groups = {
    started: (who, one, run) => (one.isBack ? `${who} ${verb(one, "comes", "come")} back, with what is on the disk.`
        : `${who} ${verb(one, "starts", "start")}. ${run.isFirst(one) ? alone : ""}`),
    suspects: (who, one) => `${who} ${verb(one, "has", "have")} heard no master for too long, and `
        + `${verb(one, "says", "say")} so.`,
    follows: (who, one) => `${who} ${verb(one, "follows", "follow")} ${one.text.replace(/^follows /, "").replace(" in ",
        " in epoch ")}, and ${verb(one, "answers", "answer")} clients.`,
    busLost: (who, one) => `${who} ${verb(one, "notices that it has", "notice that they have")} lost the bus, and `
        + `${verb(one, "falls", "fall")} silent.`,
    busConnected: (who, one) => `${who} ${verb(one, "has its", "have their")} bus again.`,
    died: (who, one) => `${who} ${verb(one, "dies", "die")}${one.wasMaster ? ", which was master" : ""}${
        about(one.text)}.`,
    stopped: (who, one) => `${who} ${verb(one, "is", "are")} stopped in good order.`,
    steppedDown: (who, one) => `${who} ${verb(one, "is", "are")} no longer master.`,
    stands: (who, one) => `${who} stands for master${epochOf(one.text)}: the others are asked to follow.`,
    becameMaster: (who, one) => `${who} is master${epochOf(one.text)}: enough of the others have promised to follow.`,
    committed: (who, one) => `${capital(one.text.replace(/^commits /, ""))} is decided, the first of this master: a `
        + "quorum has it on disk.",
    aborted: (who, one) => `${who}: ${one.text}. All refuse it, so that nobody takes it for decided.`,
    transfer: (who, one) => `${who}: ${one.text}.`,
    storageFailed: (who, one) => `${who} cannot write: ${one.text.replace(/^cannot write: /, "")}.`,
    clockStep: (who, one) => `${who}: ${one.text}.`,
};

const verb = (one, single, several) => (one.places.length > 1 ? several : single);
const epochOf = (text) => (/(\d+\.\d+)/.test(text) ? ` in epoch ${/(\d+\.\d+)/.exec(text)[1]}` : "");
const about = (text) => (/is down for [\d.]+ s/.test(text) ? `, for ${/is down for ([\d.]+ s)/.exec(text)[1]}` : "");

/** The sentences of a run, each with its step. */
export function tale(run) {
    const moments = [...marked(run), ...periods(run), ...turns(run)].sort((a, b) => a.step - b.step || a.rank - b.rank);
    const first = moments.find((one) => one.kind === "started");
    const told = { isFirst: (one) => one === first };
    return moments.slice(0, mostSentences).map((one) => ({ step: one.step, sentence: one.sentence
        ?? groups[one.kind](`Tracker${one.places.length > 1 ? "s" : ""} ${listed(one.places.map((place) =>
            run.names[place]))}`, one, told).trim() }));
}

/** What trackers did, what belongs together as one; at the step of the last of a group. */
function marked(run) {
    const moments = [];
    const open = new Map();
    const [wasUp, isMaster] = [new Set(), new Set()];
    let isCommitDue = false;
    for (const [step, time, place, kind, text] of run.marks) {
        if (!groups[kind]) continue;
        if (kind === "committed") {
            if (!isCommitDue || !isMaster.has(place)) continue;
            isCommitDue = false;
        }
        const isBack = kind === "started" && wasUp.has(place);
        const key = `${kind} ${isBack}`;
        const last = open.get(key);
        const isOne = ["becameMaster", "stands", "committed", "transfer", "aborted", "clockStep"].includes(kind);
        if (last && !isOne && time - last.time < near && !last.places.includes(place)) {
            Object.assign(last, { step, places: [...last.places, place].sort((a, b) => a - b) });
        } else {
            const one = { kind, step, time, places: [place], text, isBack, wasMaster: isMaster.has(place), rank: 1 };
            open.set(key, one);
            moments.push(one);
        }
        if (kind === "started") wasUp.add(place);
        if (kind === "becameMaster") {
            isMaster.clear();
            isMaster.add(place);
            isCommitDue = true;
            open.delete("follows false");
            open.delete("suspects false");
        }
        if (kind === "died" || kind === "stopped" || kind === "steppedDown") isMaster.delete(place);
    }
    return moments;
}

/** What was wrong for a while: where it begins, and where it ends. */
function periods(run) {
    return run.periods.filter(([kind]) => kind !== "down").flatMap(([, from, until, , text]) => [
        { step: Math.max(run.stepAt(from), 1), rank: 0, sentence: `From here on: ${text}.` },
        ...(until === null || until > run.end ? [] : [{ step: Math.max(run.stepAt(until), 1), rank: 2,
            sentence: `It is over: ${text}.` }])]);
}

/** What concerns the whole world, what a person did, what was commanded, and promises that were broken. */
function turns(run) {
    const moments = [];
    const everybody = 1 << 14;
    for (let step = 1; step <= run.count; step += 1) {
        if (run.kinds[step] & everybody) {
            for (const line of run.lines[step].split("\n")) {
                if (!line || line.startsWith("VIOLATION")) continue;
                moments.push({ step, rank: 0, sentence: `${capital(line)}.` });
            }
        } else if (run.kinds[step] & kindBit("commands")) {
            moments.push({ step, rank: 0, sentence: `${capital(run.lines[step].split("; ")[0])}.` });
        }
    }
    for (const one of run.violations) {
        moments.push({ step: one.step, rank: 3, sentence: `A promise is broken, ${one.invariant}: ${one.detail}` });
    }
    return moments;
}
