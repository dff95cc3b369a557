// Draws the space-time diagram on its two canvases, and finds what is under the pointer. Only what is seen is drawn.

import { appearance, property, ready, step as roundStep } from "./canvas.js";
import { fate, firstPlace, outside, topics } from "./sim-run.js";

/** Messages in one picture; of more, none could be told apart. */
const mostArrows = 2600;
/** Up to so many messages have heads, and names. */
const [mostHeads, mostNames] = [900, 70];
const band = 8;
/** How far a lost message goes. */
const lostShare = 0.42;
const lostWay = 16;

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

let colors = null;
let colorsOf = -1;

/** The colours of the style sheet, read once for each appearance. */
function palette() {
    if (colors && colorsOf === appearance.peek()) return colors;
    colorsOf = appearance.peek();
    colors = { font: property("font") };
    for (const name of ["ground", "surface", "sunken", "line", "edge", "ink", "ink-2", "accent", "accent-soft", "good",
        "warn", "bad", "bad-soft", "hue-1", "hue-2", "hue-3", "hue-4", "hue-5", "hue-6"]) colors[name] = property(name);
    return colors;
}

/** Where everything stands. */
export function painted(p) {
    const width = p.ground.clientWidth;
    const gutter = width < 520 ? 34 : 86;
    const wide = Math.max(width - gutter - 8, 1);
    const { from, to } = p.view;
    const rowOf = new Map(p.lanes.map((place, row) => [place, row]));
    const x = (time) => gutter + ((time - from) / (to - from)) * wide;
    const y = (place) => p.top + (rowOf.get(place) + 0.54) * p.tall;
    return {
        width, gutter, wide, x, y, timeAt: (at) => from + ((at - gutter) / wide) * (to - from),
        isShown: (place) => place === outside || rowOf.has(place),
        hit: (atX, atY) => hit(p, atX, atY), bottom: p.top + p.lanes.length * p.tall,
    };
}

// MARK: The lower canvas

export function paintGround(p) {
    const room = ready(p.ground);
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

/** Where a message begins and ends: [x, y, x, y]. */
function way(p, at, one) {
    const { from, to, sentAt, arrivedAt, fate: fates } = p.run.messages;
    const x1 = at.x(sentAt[one]);
    if (from[one] === outside || to[one] === outside) {
        const place = from[one] === outside ? to[one] : from[one];
        const [high, low] = [at.y(place) - p.tall * 0.44, at.y(place) - band / 2];
        const x2 = Number.isNaN(arrivedAt[one]) ? x1 + lostWay / 2 : at.x(arrivedAt[one]);
        const end = Number.isNaN(arrivedAt[one]) ? (high + low) / 2 : null;
        return from[one] === outside ? [x1, high, x2, end ?? low] : [x1, low, x2, end ?? high];
    }
    const down = at.y(to[one]) > at.y(from[one]) ? 1 : -1;
    const [y1, y2] = [at.y(from[one]) + (down * band) / 2, at.y(to[one]) - (down * band) / 2];
    if (fates[one] === fate.waits) return [x1, y1, Math.max(at.x(p.time), x1), y1 + (y2 - y1) * 0.8];
    if (Number.isNaN(arrivedAt[one])) return [x1, y1, x1 + lostWay, y1 + (y2 - y1) * lostShare];
    return [x1, y1, at.x(arrivedAt[one]), y2];
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

function head(pen, x1, y1, x2, y2, size) {
    const angle = Math.atan2(y2 - y1, x2 - x1);
    pen.beginPath();
    pen.moveTo(x2, y2);
    pen.lineTo(x2 - size * 1.7 * Math.cos(angle - 0.38), y2 - size * 1.7 * Math.sin(angle - 0.38));
    pen.lineTo(x2 - size * 1.7 * Math.cos(angle + 0.38), y2 - size * 1.7 * Math.sin(angle + 0.38));
    pen.fill();
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

/** A word in a box at a line. */
function tag(pen, c, x, y, text, color, at) {
    pen.font = `600 11px ${c.font}`;
    pen.textAlign = "left";
    pen.textBaseline = "middle";
    const wide = pen.measureText(text).width + 10;
    const left = Math.max(Math.min(x, at.gutter + at.wide - wide + 6), at.gutter);
    pen.fillStyle = color;
    pen.fillRect(left, y - 8, wide, 16);
    pen.fillStyle = c.surface;
    pen.fillText(text, left + 5, y + 0.5);
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

// MARK: The upper canvas

/** What changes with the step: the future is pale, what led to the step and came of it is bright. */
export function paintNow(p) {
    const room = ready(p.now);
    if (!room) return;
    const { pen, width } = room;
    const c = palette();
    const at = painted(p);
    const { run } = p;
    const x = at.x(p.time);
    pen.save();
    pen.beginPath();
    pen.rect(at.gutter - 4, 0, width - at.gutter + 4, at.bottom + 1);
    pen.clip();
    pen.fillStyle = c.surface;
    pen.globalAlpha = 0.5;
    const edge = Math.max(x, at.gutter - 4);
    if (edge < width) pen.fillRect(edge, 0, width - edge, at.bottom);
    pen.globalAlpha = 1;
    if (p.parting !== null) drawParting(pen, p, at, c);
    drawFlying(pen, p, at, c);
    if (p.isMain) drawCone(pen, p, at, c);
    for (const one of [p.hover, p.chosen]) if (one !== null) drawBold(pen, p, at, c, one, one === p.chosen);
    pen.fillStyle = c.accent;
    if (x >= at.gutter - 4) pen.fillRect(x - 0.75, 0, 1.5, at.bottom);
    if (p.isMain && p.step > 0) {
        for (let bits = run.trackers[p.step], place = 0; bits; bits >>>= 1, place += 1) {
            if (!(bits & 1) || !at.isShown(place)) continue;
            pen.fillStyle = c.surface;
            pen.strokeStyle = c.accent;
            pen.lineWidth = 2.5;
            pen.beginPath();
            pen.arc(x, at.y(place), 6, 0, 7);
            pen.fill();
            pen.stroke();
        }
    }
    pen.restore();
    drawStandings(pen, p, at, c);
}

/** What each tracker is now, under its name. */
function drawStandings(pen, p, at, c) {
    if (at.gutter < 60 || p.tall < 40) return;
    pen.font = `11px ${c.font}`;
    pen.textAlign = "left";
    pen.textBaseline = "middle";
    for (const place of p.lanes) {
        const condition = p.run.conditionAt(place, p.time);
        pen.fillStyle = condition === "master" ? c.accent : c["ink-2"];
        pen.fillText(condition, 12, at.y(place) + 15, at.gutter - 16);
    }
}

function drawParting(pen, p, at, c) {
    const x = at.x(p.parting);
    pen.strokeStyle = c["hue-4"];
    pen.lineWidth = 1.5;
    pen.setLineDash([5, 4]);
    pen.beginPath();
    pen.moveTo(x, p.top);
    pen.lineTo(x, at.bottom);
    pen.stroke();
    pen.setLineDash([]);
    if (x > at.gutter - 4 && x < at.gutter + at.wide) tag(pen, c, x, at.bottom - 9, "they part here", c["hue-4"], at);
}

/** Messages that are under way now are points on their arrows. */
function drawFlying(pen, p, at, c) {
    const { messages } = p.run;
    if (!p.seen) return;
    for (const one of p.seen) {
        const [start, end] = [messages.sentAt[one], messages.arrivedAt[one]];
        if (start > p.time || end <= p.time || Number.isNaN(end)) continue;
        const [x1, y1, x2, y2] = way(p, at, one);
        const share = (p.time - start) / Math.max(end - start, 1);
        pen.fillStyle = c[topics[messages.topic[one]].color];
        pen.beginPath();
        pen.arc(x1 + (x2 - x1) * share, y1 + (y2 - y1) * share, 3.2, 0, 7);
        pen.fill();
    }
}

function drawCone(pen, p, at, c) {
    const { run, step } = p;
    if (step < 1) return;
    const key = `${step} ${p.isWhole}`;
    if (p.coneOf !== key || p.coneRun !== run) [p.coneOf, p.coneRun, p.cone] = [key, run, run.cone(step, p.isWhole)];
    const spot = (one) => {
        const bits = run.trackers[one];
        const place = bits ? 31 - Math.clz32(bits & -bits) : -1;
        return place >= 0 && at.isShown(place) ? [at.x(run.times[one]), at.y(place)] : null;
    };
    for (const [steps, color] of [[p.cone.causes, "hue-4"], [p.cone.effects, "hue-3"]]) {
        pen.strokeStyle = c[color];
        pen.fillStyle = c[color];
        pen.lineWidth = 2;
        pen.beginPath();
        const heads = [];
        for (const one of color === "hue-4" ? [step, ...steps] : steps) {
            const cause = run.causes[one];
            if (!(cause > 0) || !(steps.has(cause) || cause === step)) continue;
            const [a, b] = [spot(cause), spot(one)];
            if (!a || !b || (b[0] < at.gutter && a[0] < at.gutter) || a[0] > at.gutter + at.wide) continue;
            pen.moveTo(...a);
            if (a[1] === b[1]) pen.quadraticCurveTo((a[0] + b[0]) / 2, a[1] - Math.min((b[0] - a[0]) / 2, 18), ...b);
            else pen.lineTo(...b);
            heads.push(b);
        }
        pen.globalAlpha = 0.85;
        pen.stroke();
        for (const one of steps) {
            const place = spot(one);
            if (!place || place[0] < at.gutter - 4 || place[0] > at.gutter + at.wide + 8) continue;
            pen.beginPath();
            pen.arc(...place, 3.4, 0, 7);
            pen.fill();
        }
        pen.globalAlpha = 1;
    }
}

function drawBold(pen, p, at, c, message, isChosen) {
    const { messages } = p.run;
    if (!at.isShown(messages.from[message]) || !at.isShown(messages.to[message])) return;
    const line = way(p, at, message);
    const color = c[topics[messages.topic[message]].color];
    if (isChosen) {
        pen.strokeStyle = color;
        pen.globalAlpha = 0.25;
        pen.lineWidth = 9;
        pen.lineCap = "round";
        pen.beginPath();
        pen.moveTo(line[0], line[1]);
        pen.lineTo(line[2], line[3]);
        pen.stroke();
        pen.globalAlpha = 1;
        pen.lineCap = "butt";
    }
    pen.strokeStyle = color;
    pen.fillStyle = color;
    pen.lineWidth = 2.4;
    pen.beginPath();
    pen.moveTo(line[0], line[1]);
    pen.lineTo(line[2], line[3]);
    pen.stroke();
    if (messages.fate[message] !== fate.lost) head(pen, ...line, 6.5);
}

// MARK: What is under the pointer

function hit(p, x, y) {
    if (!p.run || !p.seen) return null;
    const at = painted(p);
    if (y < p.top) {
        const one = p.troubles.all.find(({ row, from, until }) => y >= row * p.stripRow && y < (row + 1) * p.stripRow + 3
            && at.x(from) <= x + 2 && at.x(until) >= x - 2);
        return one ? { text: `${one.text}, ${(one.from / 1e6).toFixed(3)} s to `
            + (one.isOpen ? "the end" : `${(one.until / 1e6).toFixed(3)} s`) } : null;
    }
    const step = hitStep(p, at, x, y);
    if (step) return step;
    let best = null;
    for (const one of p.seen) {
        const far = distance(x, y, ...way(p, at, one));
        if (far < 7 && far < (best?.far ?? Infinity)) best = { message: one, far };
    }
    return best;
}

function hitStep(p, at, x, y) {
    const { run } = p;
    const place = p.lanes.find((one) => Math.abs(at.y(one) - y) <= 7);
    if (place === undefined) return null;
    const [from, to] = [at.timeAt(x - 7), at.timeAt(x + 7)];
    let best = null;
    for (let step = Math.max(run.stepFrom(from), 1); step <= run.count && run.times[step] <= to; step += 1) {
        if (!((run.trackers[step] >>> place) & 1)) continue;
        const far = Math.abs(at.x(run.times[step]) - x);
        if (far <= (best?.far ?? 7)) best = { step, far };
    }
    return best;
}

function distance(x, y, x1, y1, x2, y2) {
    const [dx, dy] = [x2 - x1, y2 - y1];
    const share = Math.min(Math.max(((x - x1) * dx + (y - y1) * dy) / (dx * dx + dy * dy || 1), 0), 1);
    return Math.hypot(x - x1 - share * dx, y - y1 - share * dy);
}
