// What follows from a list of transitions: who was master when, what was broken how long, what led to what.
//
// Pure: a list goes in, whether a tracker told it or a simulated run. A transition is { number, time, tracker, kind,
// text, causes, count, epoch }, `causes` being numbers of earlier ones.

/** How each kind is drawn, and what it is called; the more important a kind, the later. */
export const kinds = {
    commit: { glyph: "▮", color: "hue-1", name: "commits" },
    vote: { glyph: "●", color: "hue-1", name: "votes" },
    change: { glyph: "▪", color: "ink-2", name: "changes" },
    follow: { glyph: "■", color: "hue-3", name: "followers" },
    stepDown: { glyph: "○", color: "warn", name: "step-downs" },
    transfer: { glyph: "◆", color: "hue-4", name: "hand-overs" },
    election: { glyph: "▲", color: "warn", name: "elections" },
    mended: { glyph: "✚", color: "good", name: "mended" },
    fault: { glyph: "✕", color: "bad", name: "faults" },
    master: { glyph: "★", color: "accent", name: "masters" },
};

/** How a kind is drawn, also one that is new. */
export const look = (kind) => kinds[kind] ?? kinds.change;

/** When which tracker was master: [{ tracker, time, end }]; `end` is null while it is. */
export function masterships(events, masterNow = null) {
    const all = [];
    let open = null;
    const close = (time) => {
        if (open) open.end = time;
        open = null;
    };
    for (const one of events) {
        if (one.kind === "master") {
            if (open?.tracker === one.tracker) continue;
            close(one.time);
            all.push((open = { tracker: one.tracker, time: one.time, end: null }));
        } else if (one.kind === "stepDown" && open?.tracker === one.tracker) {
            close(one.time);
        }
    }
    // It may have been master since before the first that is remembered.
    if (!all.length && masterNow && events.length) all.push({ tracker: masterNow, time: -Infinity, end: null });
    return all;
}

/** What was broken, and until when: [{ tracker, time, end, text }]; `end` is null while it is. */
export function outages(events) {
    const all = [];
    const open = new Map();
    for (const one of events) {
        if (one.kind === "fault" && !open.has(one.tracker)) {
            const outage = { tracker: one.tracker, time: one.time, end: null, text: one.text };
            open.set(one.tracker, outage);
            all.push(outage);
        } else if (one.kind === "mended" || one.kind === "follow" || one.kind === "master") {
            const outage = open.get(one.tracker);
            if (outage) outage.end = one.time;
            open.delete(one.tracker);
        }
    }
    return all;
}

/** Elections as marks: the new masters, and those who stood in vain. */
export const elections = (events) => events.filter((one) => one.kind === "master" || one.kind === "transfer");

const farthest = 300;

/**
 * What led to a transition and what came of it.
 *
 * @returns { causes, effects, edges }: numbers, nearest in time first, FARTHEST of each at most, and [cause, effect]
 *     pairs.
 */
export function cone(events, number) {
    const byNumber = new Map(events.map((one) => [one.number, one]));
    const effects = new Map();
    for (const one of events) {
        for (const cause of one.causes ?? []) {
            if (!byNumber.has(cause)) continue;
            if (!effects.has(cause)) effects.set(cause, []);
            effects.get(cause).push(one.number);
        }
    }
    const edges = [];
    const walk = (next, edge) => {
        const seen = new Set([number]);
        const queue = [number];
        for (let at = 0; at < queue.length && queue.length < farthest; at += 1) {
            for (const other of next(queue[at])) {
                edges.push(edge(queue[at], other));
                if (seen.has(other)) continue;
                seen.add(other);
                queue.push(other);
            }
        }
        const far = (n) => Math.abs(byNumber.get(n).time - (byNumber.get(number)?.time ?? 0));
        return queue.slice(1).sort((a, b) => far(a) - far(b));
    };
    return {
        causes: walk((n) => (byNumber.get(n)?.causes ?? []).filter((one) => byNumber.has(one)),
            (from, to) => [to, from]),
        effects: walk((n) => effects.get(n) ?? [], (from, to) => [from, to]),
        edges,
    };
}
