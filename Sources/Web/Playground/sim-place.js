// What both canvases of the space-time diagram share: where everything stands, its colours, arrows and tags.

import { appearance, property } from "./canvas.js";
import { fate, outside } from "./sim-run.js";

/** How thick the band of a tracker's role is. */
export const band = 8;

/** How far a lost message goes. */
const lostShare = 0.42;
const lostWay = 16;

let colors = null;
let colorsOf = -1;

/** The colours of the style sheet, read once for each appearance. */
export function palette() {
    if (colors && colorsOf === appearance.peek()) return colors;
    colorsOf = appearance.peek();
    colors = { font: property("font") };
    for (const name of ["ground", "surface", "sunken", "line", "edge", "ink", "ink-2", "accent", "accent-soft", "good",
        "warn", "bad", "bad-soft", "hue-1", "hue-2", "hue-3", "hue-4", "hue-5", "hue-6"]) colors[name] = property(name);
    return colors;
}

/**
 * Draws once a frame at most, however often it is asked.
 *
 * @param draw is told whether the ground is to be drawn, too; it returns false where it cannot draw yet.
 * @returns what asks for it: (isGround) => …
 */
export function onceAFrame(draw) {
    let isGroundDue = false;
    let isPlanned = false;
    return (isGround) => {
        isGroundDue ||= isGround;
        if (isPlanned) return;
        isPlanned = true;
        requestAnimationFrame(() => {
            isPlanned = false;
            if (draw(isGroundDue)) isGroundDue = false;
        });
    };
}

/** Where everything stands. */
export function painted(p) {
    const width = p.size?.width ?? p.ground.clientWidth;
    const gutter = width < 520 ? 34 : 86;
    const wide = Math.max(width - gutter - 8, 1);
    const { from, to } = p.view;
    const rowOf = new Map(p.lanes.map((place, row) => [place, row]));
    const x = (time) => gutter + ((time - from) / (to - from)) * wide;
    const y = (place) => p.top + (rowOf.get(place) + 0.54) * p.tall;
    return {
        width, gutter, wide, x, y, timeAt: (at) => from + ((at - gutter) / wide) * (to - from),
        isShown: (place) => place === outside || rowOf.has(place),
        bottom: p.top + p.lanes.length * p.tall,
    };
}

/** Where a message begins and ends: [x, y, x, y]. */
export function way(p, at, one) {
    const { from, to, sentAt, arrivedAt, fate: fates } = p.run.messages;
    const x1 = at.x(sentAt[one]);
    if (from[one] === outside || to[one] === outside) {
        const place = from[one] === outside ? to[one] : from[one];
        const [high, low] = [at.y(place) - p.tall * 0.44, at.y(place) - band / 2];
        const isCut = Number.isNaN(arrivedAt[one]) || fates[one] === fate.lost;
        const x2 = isCut ? x1 + lostWay / 2 : at.x(arrivedAt[one]);
        const end = isCut ? (high + low) / 2 : null;
        return from[one] === outside ? [x1, high, x2, end ?? low] : [x1, low, x2, end ?? high];
    }
    const down = at.y(to[one]) > at.y(from[one]) ? 1 : -1;
    const [y1, y2] = [at.y(from[one]) + (down * band) / 2, at.y(to[one]) - (down * band) / 2];
    if (fates[one] === fate.waits) return [x1, y1, Math.max(at.x(p.time), x1), y1 + (y2 - y1) * 0.8];
    if (fates[one] === fate.lost) {
        const x2 = arrivedAt[one] > sentAt[one] ? at.x(arrivedAt[one]) : x1 + lostWay;
        return [x1, y1, x2, y1 + (y2 - y1) * lostShare];
    }
    return [x1, y1, at.x(arrivedAt[one]), y2];
}

/** The head of an arrow. */
export function head(pen, x1, y1, x2, y2, size) {
    const angle = Math.atan2(y2 - y1, x2 - x1);
    pen.beginPath();
    pen.moveTo(x2, y2);
    pen.lineTo(x2 - size * 1.7 * Math.cos(angle - 0.38), y2 - size * 1.7 * Math.sin(angle - 0.38));
    pen.lineTo(x2 - size * 1.7 * Math.cos(angle + 0.38), y2 - size * 1.7 * Math.sin(angle + 0.38));
    pen.fill();
}

/** A word in a box at a line. */
export function tag(pen, c, x, y, text, color, at) {
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
