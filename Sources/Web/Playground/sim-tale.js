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
        " in epoch ")}, and ${verb(one, "is", "are")} part of its cluster.`,
    busLost: (who, one) => `${who} ${verb(one, "notices that it has", "notice that they have")} lost the bus, and `
        + `${verb(one, "falls", "fall")} silent.`,
    busConnected: (who, one) => `${who} ${verb(one, "has its", "have their")} bus again.`,
    died: (who, one) => `${who}${one.wasMaster ? ", the master," : ""} ${verb(one, "dies", "die")}${about(one.text)}.`,
    stopped: (who, one) => `${who} ${verb(one, "is", "are")} stopped in good order.`,
    steppedDown: (who, one) => `${who} ${verb(one, "is", "are")} no longer master.`,
    stands: (who, one) => `${who} stands for master${epochOf(one.text)}: the others are asked to follow.`,
    becameMaster: (who, one) => `${who} is master${epochOf(one.text)}: enough of the others have promised to follow.`,
    committed: (who, one) => `${capital(one.text.replace(/^commits /, ""))} is decided, the first of this master: a `
        + "quorum has it on disk.",
    aborted: (who, one) => `${who} ${verb(one, "knows", "know")} that ${entryOf(one.text)} is refused by vote: nobody `
        + "may take it for decided any more.",
    transfer: (who, one) => `${who} ${one.text}.`,
    storageFailed: (who, one) => `${who} cannot write: ${one.text.replace(/^cannot write: /, "")}.`,
    clockStep: (who, one) => `${who}: ${one.text}.`,
};

const entryOf = (text) => /entry \d+/.exec(text)?.[0] ?? "an entry";
const verb = (one, single, several) => (one.places.length > 1 ? several : single);
const epochOf = (text) => (/(\d+\.\d+)/.test(text) ? ` in epoch ${/(\d+\.\d+)/.exec(text)[1]}` : "");
const about = (text) => (/is down for [\d.]+ s/.test(text) ? `, for ${/is down for ([\d.]+ s)/.exec(text)[1]}` : "");

/** The sentences of a run, each with its step. */
export function tale(run) {
    const moments = [...marked(run), ...periods(run), ...turns(run), ...promises(run)]
        .sort((a, b) => a.step - b.step || a.rank - b.rank);
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
    const [wasUp, isMaster, isOff] = [new Set(), new Set(), new Set()];
    let isCommitDue = false;
    for (const [step, time, place, kind, text] of run.marks) {
        if (!groups[kind]) continue;
        if (kind === "committed") {
            if (!isCommitDue || !isMaster.has(place)) continue;
            isCommitDue = false;
        }
        // That it gets its bus after a start is no news.
        if (kind === "busLost") isOff.add(place);
        if (kind === "busConnected" && !isOff.delete(place)) continue;
        const isBack = kind === "started" && wasUp.has(place);
        const key = `${kind} ${isBack}`;
        const last = open.get(key);
        const isOne = ["becameMaster", "stands", "committed", "transfer", "clockStep"].includes(kind);
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

/** Whose doing it is matters only where it has a number. */
const plain = (text) => text.replace(/^the script: /, "");

/** Of a story's reviewed transcript, what is in no mark: who promises to follow, who makes way, who is missed. */
function promises(run) {
    return run.guide.flatMap(({ step, text }) => {
        const [, name] = /^tracker (\S+) /.exec(text) ?? [];
        const election = /hears (\S+): ELECTION \[([\d.]+)\].*writes promise/.exec(text);
        const way = /wakes.*tells (\S+): HANDOVER/.exec(text);
        const down = /takes tracker (\S+) for down/.exec(text);
        const merged = /(has merged[^;]*)/.exec(text);
        let sentence = null;
        if (merged) sentence = `Tracker ${name} ${merged[1]}.`;
        if (down) sentence = `Tracker ${name} takes tracker ${down[1]} for down.`;
        if (way) sentence = `Tracker ${name} makes way for ${way[1]}, which is preferred.`;
        if (election) {
            sentence = `Tracker ${name} promises to follow ${election[1]} in epoch ${election[2]}, and nobody of an `
                + "earlier one.";
        }
        return sentence ? [{ step, rank: 1, sentence }] : [];
    });
}

/** What was wrong for a while: where it begins, and where it ends. */
function periods(run) {
    return run.periods.filter(([kind]) => kind !== "down").flatMap(([, from, until, , text]) => [
        { step: Math.max(run.stepAt(from), 1), rank: 0, sentence: `From here on: ${plain(text)}.` },
        ...(until === null || until > run.end ? [] : [{ step: Math.max(run.stepAt(until), 1), rank: 2,
            sentence: `It is over: ${plain(text)}.` }])]);
}

const phases = {
    "the world is healed": "The world is healed: there are no more faults.",
    "everybody asks anew": "Every client asks anew.",
    "the world is looked at": "The world is looked at: there must be one master, one state, and an answer for all.",
};

/** What concerns the whole world, what a person did, what was commanded, and promises that were broken. */
function turns(run) {
    const moments = [];
    const everybody = 1 << 14;
    for (let step = 1; step <= run.count; step += 1) {
        if (run.kinds[step] & (everybody | kindBit("faults"))) {
            for (const line of run.lines[step].split("\n")) {
                if (line.startsWith("the player ")) moments.push({ step, rank: 0, sentence: `${capital(line)}.` });
                if (phases[line]) moments.push({ step, rank: 0, sentence: phases[line] });
            }
        } else if (run.kinds[step] & kindBit("commands")) {
            const first = run.lines[step].split(/; |\n/)[0];
            if (/ command|operator/.test(first)) moments.push({ step, rank: 0, sentence: `${capital(first)}.` });
        }
    }
    for (const one of run.violations) {
        moments.push({ step: one.step, rank: 3, sentence: `A promise is broken, ${one.invariant}: ${one.detail}` });
    }
    return moments;
}
