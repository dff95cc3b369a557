// Draws the upper canvas of the space-time diagram, which changes with the step, and finds what is under the pointer.

import { ready } from "./canvas.js";
import { head, painted, palette, tag, way } from "./sim-place.js";
import { fate, topics } from "./sim-run.js";

/** What changes with the step: the future is pale, what led to the step and came of it is bright. */
export function paintNow(p) {
    const room = ready(p.now, p.size);
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
        // What a tracker's own clock or disk has led to is an arc along its lane, and thinner than messages.
        for (const isAlong of [true, false]) {
            pen.beginPath();
            for (const one of color === "hue-4" ? [step, ...steps] : steps) {
                const cause = run.causes[one];
                if (!(cause > 0) || !(steps.has(cause) || cause === step)) continue;
                const [a, b] = [spot(cause), spot(one)];
                if (!a || !b || (b[0] < at.gutter && a[0] < at.gutter) || a[0] > at.gutter + at.wide) continue;
                if ((a[1] === b[1]) !== isAlong) continue;
                pen.moveTo(...a);
                if (!isAlong) pen.lineTo(...b);
                else pen.quadraticCurveTo((a[0] + b[0]) / 2, a[1] - Math.min((b[0] - a[0]) / 2, 16), ...b);
            }
            pen.lineWidth = isAlong ? 1 : 2;
            pen.globalAlpha = isAlong ? 0.55 : 0.85;
            pen.stroke();
        }
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

/** The message or step under the pointer, or the words of what was wrong; null where there is none. */
export function hit(p, x, y) {
    if (!p.run || !p.seen) return null;
    const at = painted(p);
    if (y < p.top) {
        const row = Math.floor(y / p.stripRow);
        const one = p.troubles.all.find((other) => other.row === row && at.x(other.from) <= x + 2
            && at.x(other.until) >= x - 2);
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
