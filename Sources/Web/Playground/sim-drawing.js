// Draws the lower canvas of the space-time diagram, which changes with what is seen. Only what is seen is drawn.

import { ready, step as roundStep } from "./canvas.js";
import { band, head, painted, palette, tag, way } from "./sim-place.js";
import { fate, firstPlace, topics } from "./sim-run.js";

/** Messages in one picture; of more, none could be told apart. */
const mostArrows = 2600;
/** Up to so many messages have heads, and names. */
const [mostHeads, mostNames] = [900, 70];
const roles = { down: null, newcomer: "edge", slave: "hue-3", candidate: "hue-2", master: "accent" };
const troubles = { links: "hue-2", held: "edge", noBus: "bad", dark: "warn", disk: "hue-4", clock: "hue-6" };

/** The signs of what happens on a lane: [glyph, colour, how important]. */
const signs = {
    committed: ["▮", "hue-1", 0], suspects: ["?", "hue-2", 1], stands: ["▲", "hue-2", 3],
    becameMaster: ["★", "accent", 5], steppedDown: ["▽", "warn", 3], follows: ["●", "hue-3", 1],
    transfer: ["◆", "hue-4", 2], aborted: ["⊘", "bad", 3], started: ["◯", "ink-2", 2], died: ["✕", "bad", 4],
    stopped: ["✕", "ink-2", 3], busLost: ["⌁", "bad", 3], busConnected: ["⌁", "good", 2],
    storageFailed: ["▣", "bad", 3], clockStep: ["◷", "hue-6", 3], fenced: ["◍", "warn", 2],
};

// MARK: The lower canvas

export function paintGround(p) {
    const room = ready(p.ground, p.size);
    if (!room) return;
    const { pen, width, height } = room;
    const c = palette();
    const at = painted(p);
    drawLanes(pen, p, at, c, width);
    drawTimes(pen, p, at, c, width, height);
    pen.save();
    pen.beginPath();
    pen.rect(at.gutter, 0, width - at.gutter, at.bottom);
    pen.clip();
    drawTroubles(pen, p, at, c);
    drawRoles(pen, p, at, c);
    drawSteps(pen, p, at, c);
    p.seen = seenMessages(p, at);
    drawMessages(pen, p, at, c);
    drawMarks(pen, p, at, c);
    drawViolations(pen, p, at, c);
    pen.restore();
    if (p.seen.left) note(pen, at, c, `${p.seen.left} messages are not drawn here: zoom in`);
}

function drawLanes(pen, p, at, c, width) {
    const isShort = at.gutter < 60;
    pen.textBaseline = "middle";
    pen.textAlign = "left";
    p.lanes.forEach((place, row) => {
        const top = p.top + row * p.tall;
        pen.fillStyle = c.line;
        pen.fillRect(0, Math.round(top) - 0.5, width, 1);
        pen.fillStyle = c.ink;
        pen.font = `600 12px ${c.font}`;
        const name = p.run.names[place];
        pen.fillText(isShort ? name : `Tracker ${name}`, isShort ? 8 : 12, at.y(place), at.gutter - 10);
    });
    pen.fillStyle = c.line;
    pen.fillRect(0, Math.round(at.bottom) - 0.5, width, 1);
}

function drawTimes(pen, p, at, c, width, height) {
    const { from, to } = p.view;
    const by = roundStep(to - from, at.wide / 96);
    const digits = Math.max(0, Math.ceil(6 - Math.log10(by)));
    pen.font = `11px ${c.font}`;
    pen.textAlign = "center";
    pen.textBaseline = "middle";
    for (let time = Math.ceil(Math.max(from, 0) / by) * by; time <= to; time += by) {
        const x = Math.round(at.x(time));
        pen.fillStyle = c.line;
        pen.fillRect(x, p.top, 1, at.bottom - p.top);
        const text = `${(time / 1e6).toFixed(by >= 1e6 ? 0 : digits)} s`;
        const half = pen.measureText(text).width / 2;
        if (x - half < at.gutter - 20 || x + half > width) continue;
        pen.fillStyle = c["ink-2"];
        pen.fillText(text, x, height - p.axis / 2);
    }
}

/** What was wrong for a while: a bar with words above the lanes, and a tint on those that it hit. */
function drawTroubles(pen, p, at, c) {
    const { from, to } = p.view;
    pen.textBaseline = "middle";
    pen.textAlign = "left";
    pen.font = `10.5px ${c.font}`;
    for (const one of p.troubles.all) {
        if (one.from > to || one.until < from) continue;
        const left = Math.max(at.x(one.from), at.gutter - 2);
        const right = Math.min(at.x(one.until), at.gutter + at.wide + 8);
        const wide = Math.max(right - left, 2);
        const top = one.row * p.stripRow + 3;
        const color = c[troubles[one.kind] ?? "edge"];
        pen.fillStyle = color;
        pen.globalAlpha = 0.16;
        pen.fillRect(left, top, wide, p.stripRow - 2);
        for (const place of one.places) {
            if (!at.isShown(place)) continue;
            pen.globalAlpha = one.kind === "links" ? 0.05 : 0.11;
            pen.fillRect(left, at.y(place) - p.tall * 0.54, wide, p.tall);
        }
        pen.globalAlpha = 1;
        pen.fillRect(Math.max(at.x(one.from), at.gutter - 2), top, 2, p.stripRow - 2);
        if (wide < 40) continue;
        pen.save();
        pen.beginPath();
        pen.rect(left, top, wide - 4, p.stripRow);
        pen.clip();
        pen.fillStyle = c.ink;
        pen.fillText(one.text, left + 7, top + (p.stripRow - 2) / 2 + 0.5);
        pen.restore();
    }
}

/** What each tracker was, as a band along its lane. */
function drawRoles(pen, p, at, c) {
    const { from, to } = p.view;
    for (const place of p.lanes) {
        const all = p.run.rolesOf(place);
        const y = at.y(place);
        const draw = (start, end, condition) => {
            if (end < from || start > to || end <= start) return;
            const left = Math.max(at.x(Math.max(start, 0)), at.gutter - 4);
            const right = Math.min(at.x(end), at.gutter + at.wide + 10);
            const color = roles[condition];
            if (!color) {
                pen.fillStyle = c.edge;
                for (let dot = Math.ceil(left / 7) * 7; dot < right; dot += 7) pen.fillRect(dot, y - 0.5, 2, 1);
                return;
            }
            pen.fillStyle = c[color];
            pen.globalAlpha = condition === "master" ? 0.85 : condition === "candidate" ? 0.7 : 0.32;
            pen.fillRect(left, y - band / 2, Math.max(right - left, 1), band);
            pen.globalAlpha = 1;
        };
        const first = firstPlace(all.length, (one) => all[one][1] > from);
        let [since, condition] = first ? [all[first - 1][1], all[first - 1][3]] : [0, "down"];
        for (let one = first; one < all.length && since <= to; one += 1) {
            draw(since, all[one][1], condition);
            [since, condition] = [all[one][1], all[one][3]];
        }
        draw(since, Math.min(p.run.end, to + 1), condition);
    }
}

/** Each step as a point on the lane of its tracker. */
function drawSteps(pen, p, at, c) {
    const { run } = p;
    const last = new Float32Array(32).fill(-9);
    const until = run.stepAt(p.view.to);
    const first = Math.max(run.stepFrom(p.view.from), 1);
    pen.fillStyle = c["ink-2"];
    pen.globalAlpha = until - first < 600 ? 0.75 : until - first < 4000 ? 0.3 : 0.12;
    for (let step = first; step <= until; step += 1) {
        const x = at.x(run.times[step]);
        for (let bits = run.trackers[step], place = 0; bits; bits >>>= 1, place += 1) {
            if (!(bits & 1) || !at.isShown(place) || x - last[place] < 2) continue;
            last[place] = x;
            pen.fillRect(x - 1, at.y(place) - band / 2, 1.5, band);
        }
    }
    pen.globalAlpha = 1;
}

/** The messages that are drawn: as many as can be told apart, the more important first. */
function seenMessages(p, at) {
    const { run, hidden } = p;
    const { topic, from, to } = run.messages;
    const all = [];
    const counts = topics.map(() => 0);
    const isHidden = topics.map((one) => hidden.has(one.name));
    run.eachMessage(p.view.from, p.view.to, (one) => {
        if (isHidden[topic[one]] || !at.isShown(from[one]) || !at.isShown(to[one])) return;
        all.push(one);
        counts[topic[one]] += 1;
    });
    let left = 0;
    const isLeft = topics.map(() => false);
    for (const name of ["life", "client", "request", "vote", "join", "election"]) {
        if (all.length - left <= mostArrows) break;
        const number = topics.findIndex((one) => one.name === name);
        isLeft[number] = true;
        left += counts[number];
    }
    return Object.assign(left ? all.filter((one) => !isLeft[topic[one]]) : all, { left });
}

function drawMessages(pen, p, at, c) {
    const { run, seen } = p;
    const { topic, fate: fates } = run.messages;
    const hasHeads = seen.length <= mostHeads;
    const alpha = seen.length > 1200 ? 0.3 : seen.length > 400 ? 0.5 : 0.8;
    topics.forEach((one, number) => {
        for (const isSound of [true, false]) {
            pen.beginPath();
            let count = 0;
            for (const message of seen) {
                if (topic[message] !== number || (fates[message] === fate.arrived) !== isSound) continue;
                const [x1, y1, x2, y2] = way(p, at, message);
                pen.moveTo(x1, y1);
                pen.lineTo(x2, y2);
                count += 1;
            }
            if (!count) continue;
            pen.strokeStyle = c[one.color];
            pen.globalAlpha = one.name === "life" ? alpha * 0.6 : alpha;
            pen.lineWidth = one.name === "life" ? 0.8 : 1.1;
            pen.setLineDash(isSound ? [] : [3, 3]);
            pen.stroke();
        }
        pen.setLineDash([]);
        if (!hasHeads) return;
        pen.fillStyle = c[one.color];
        for (const message of seen) {
            if (topic[message] === number && fates[message] !== fate.lost) head(pen, ...way(p, at, message), 4.5);
        }
    });
    pen.globalAlpha = 1;
    drawEnds(pen, p, at, c);
    if (seen.length <= mostNames && p.tall >= 34) drawNames(pen, p, at, c);
}

/** Lost messages end in a cross, those that find nobody in a ring. */
function drawEnds(pen, p, at, c) {
    const fates = p.run.messages.fate;
    pen.lineWidth = 1.5;
    let last = -9;
    for (const message of p.seen) {
        if (fates[message] !== fate.lost && fates[message] !== fate.nobody) continue;
        const [x1, , x, y] = way(p, at, message);
        if (p.seen.length > mostHeads && x1 - last < 3) continue;
        last = x1;
        pen.strokeStyle = c.bad;
        pen.beginPath();
        if (fates[message] === fate.nobody) {
            pen.arc(x, y, 3.5, 0, 7);
        } else {
            pen.moveTo(x - 3, y - 3);
            pen.lineTo(x + 3, y + 3);
            pen.moveTo(x + 3, y - 3);
            pen.lineTo(x - 3, y + 3);
        }
        pen.stroke();
    }
}

/** The names of messages beside their arrows, where there is room. */
function drawNames(pen, p, at, c) {
    const boxes = [];
    pen.font = `10px ${c.font}`;
    pen.textAlign = "left";
    pen.textBaseline = "middle";
    pen.lineJoin = "round";
    for (const message of p.seen) {
        const [x1, y1, x2, y2] = way(p, at, message);
        const text = p.run.messageName(message);
        const wide = pen.measureText(text).width;
        const share = [0.5, 0.35, 0.65, 0.22].find((one) => {
            const [x, y] = [x1 + (x2 - x1) * one + 5, y1 + (y2 - y1) * one];
            return x > at.gutter && x + wide < at.gutter + at.wide
                && !p.lanes.some((place) => Math.abs(at.y(place) - y) < 10)
                && !boxes.some((box) => Math.abs(box.y - y) < 12 && x < box.x + box.wide + 4 && box.x < x + wide + 4);
        });
        if (share === undefined) continue;
        const [x, y] = [x1 + (x2 - x1) * share + 5, y1 + (y2 - y1) * share];
        boxes.push({ x, y, wide });
        pen.strokeStyle = c.surface;
        pen.lineWidth = 3;
        pen.strokeText(text, x, y);
        pen.fillStyle = c[topics[p.run.messages.topic[message]].color];
        pen.fillText(text, x, y);
    }
}

function drawMarks(pen, p, at, c) {
    const { from, to } = p.view;
    pen.textAlign = "center";
    pen.textBaseline = "middle";
    for (const place of p.lanes) {
        const all = p.run.marksByLane[place];
        const y = at.y(place) - band / 2 - 8;
        let [last, weight] = [-99, 0];
        for (let one = firstPlace(all.length, (at_) => all[at_][1] >= from); one < all.length; one += 1) {
            const [, time, , kind] = all[one];
            if (time > to) break;
            const sign = signs[kind];
            if (!sign) continue;
            const x = at.x(time);
            if (x - last < 9 && sign[2] <= weight) continue;
            [last, weight] = [x, sign[2]];
            pen.font = `${sign[2] > 3 ? 15 : sign[2] ? 11 : 8}px ${c.font}`;
            pen.lineWidth = 3;
            pen.strokeStyle = c.surface;
            pen.strokeText(sign[0], x, y);
            pen.fillStyle = c[sign[1]];
            pen.fillText(sign[0], x, y);
        }
    }
}

function drawViolations(pen, p, at, c) {
    pen.font = `600 11px ${c.font}`;
    for (const one of p.run.violations) {
        const x = at.x(p.run.timeOf(one.step));
        if (x < at.gutter - 2 || x > at.gutter + at.wide + 8) continue;
        pen.fillStyle = c.bad;
        pen.fillRect(x - 1, p.top, 2, at.bottom - p.top);
        tag(pen, c, x, p.top + 9, one.invariant, c.bad, at);
    }
}

function note(pen, at, c, text) {
    pen.font = `11px ${c.font}`;
    pen.textAlign = "right";
    pen.textBaseline = "middle";
    const wide = pen.measureText(text).width + 14;
    pen.fillStyle = c.surface;
    pen.globalAlpha = 0.85;
    pen.fillRect(at.gutter + at.wide - wide, at.bottom - 20, wide + 8, 17);
    pen.globalAlpha = 1;
    pen.fillStyle = c["ink-2"];
    pen.fillText(text, at.gutter + at.wide, at.bottom - 11);
}
