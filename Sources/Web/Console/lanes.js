// Lanes over time, on a canvas: a lane a tracker, a glyph a transition, commits as bars. It knows nothing of the API:
// whoever has a list of transitions (story.js says what one is) can show it, a running cluster or a simulated run.
//
// Wheel and pinch zoom, a drag moves, a click selects. Keys: ← → move, + − zoom, Home and End go to the ends, N and P
// select the next and the one before, Esc lets go. What was selected is bright with what led to it and what came of it.

import { appearance, property, ready, timeStep, whenSized } from "./canvas.js";
import { exact, time } from "./format.js";
import { h, named } from "./dom.js";
import { effect } from "./signals.js";
import { cone, look, masterships, outages } from "./story.js";

/** Room at the left for the lanes' names. */
const gutterOf = (canvas) => (canvas.clientWidth < 520 ? 30 : 84);
const axis = 26;
const shortest = 20;
const longest = 40 * 86_400_000;
/** Where in its lane a kind is drawn, from the top. */
const level = { fault: 0.13, mended: 0.13, election: 0.27, vote: 0.41, change: 0.41 };
const isQuiet = (kind) => kind === "commit";

/**
 * @param options { label, events, lanes, masterNow, now, view, moved, selected, select, isHidden }:
 *     events() oldest first; lanes() gives [{ id, name }]; now() the right end of time, in milliseconds;
 *     view() gives { from, to }, and moved({ from, to }) is told another; selected() is a number or null, and
 *     select(number) is told another; isHidden(kind).
 * @returns the element.
 */
export function lanes(options) {
    const tip = h("div.tip", { hidden: true });
    const canvas = h("canvas.lanes", {
        tabindex: "0", role: "application", "aria-label": options.label, "aria-roledescription": "timeline",
        style: () => ({ height: `${options.lanes().length * laneHeight(options.lanes().length) + axis}px` }),
    });
    const picture = () => ({ options, canvas, view: options.view(), all: options.events() });
    const draw = () => drawAll(picture());
    effect(() => {
        appearance.value;
        options.selected();
        options.lanes();
        draw();
    });
    whenSized(canvas, draw);
    steer(canvas, options, tip, picture);
    return h("div.lanes-box", null, canvas, tip);
}

const laneHeight = (n) => (n <= 3 ? 132 : n <= 6 ? 88 : 56);

function xOf({ canvas, view }, moment) {
    return gutterOf(canvas) + ((moment - view.from) / (view.to - view.from)) * (canvas.clientWidth - gutterOf(canvas) - 10);
}

function momentOf({ canvas, view }, x) {
    return view.from + ((x - gutterOf(canvas)) / (canvas.clientWidth - gutterOf(canvas) - 10)) * (view.to - view.from);
}

// MARK: Steering

function steer(canvas, options, tip, picture) {
    const pointers = new Map();
    let travelled = 0;
    const zoom = (factor, x) => {
        const p = picture();
        const fixed = momentOf(p, Math.max(x, gutterOf(canvas)));
        const span = Math.min(Math.max((p.view.to - p.view.from) * factor, shortest), longest);
        const share = (fixed - p.view.from) / (p.view.to - p.view.from);
        options.moved({ from: fixed - span * share, to: fixed + span * (1 - share) });
    };
    const pan = (share) => {
        const { from, to } = options.view();
        options.moved({ from: from + (to - from) * share, to: to + (to - from) * share });
    };
    const on = (name, run, how) => canvas.addEventListener(name, run, how);
    on("wheel", (event) => {
        event.preventDefault();
        const isPan = event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY);
        if (isPan) pan((event.deltaX || event.deltaY) / 1200);
        else zoom(1.0016 ** Math.max(Math.min(event.deltaY, 400), -400), event.offsetX);
    }, { passive: false });
    on("pointerdown", (event) => {
        canvas.setPointerCapture(event.pointerId);
        pointers.set(event.pointerId, event.offsetX);
        travelled = 0;
    });
    on("pointermove", (event) => {
        const before = pointers.get(event.pointerId);
        if (before === undefined) return showTip(event, picture(), tip);
        tip.hidden = true;
        const others = [...pointers].filter(([id]) => id !== event.pointerId);
        if (others.length) {
            const apart = (x) => Math.max(Math.abs(x - others[0][1]), 8);
            zoom(apart(before) / apart(event.offsetX), (others[0][1] + event.offsetX) / 2);
        } else {
            pan((before - event.offsetX) / (canvas.clientWidth - gutterOf(canvas) - 10));
        }
        travelled += Math.abs(event.offsetX - before);
        pointers.set(event.pointerId, event.offsetX);
    });
    const release = (event) => {
        const isClick = pointers.delete(event.pointerId) && travelled < 4 && event.type === "pointerup";
        if (isClick) options.select(hit(picture(), event.offsetX, event.offsetY)?.number ?? null);
    };
    on("pointerup", release);
    on("pointercancel", release);
    on("pointerleave", () => (tip.hidden = true));
    on("keydown", (event) => {
        const middle = (gutterOf(canvas) + canvas.clientWidth) / 2;
        const acts = {
            ArrowLeft: () => pan(-0.1), ArrowRight: () => pan(0.1), "+": () => zoom(0.7, middle),
                "=": () => zoom(0.7, middle),
            "-": () => zoom(1 / 0.7, middle), Home: () => goTo(options, options.events()[0]?.time),
                End: () => goTo(options, options.now()),
            n: () => selectNext(options, 1), p: () => selectNext(options, -1), Escape: () => options.select(null),
        };
        const act = acts[event.key.length === 1 ? event.key.toLowerCase() : event.key];
        if (!act || event.ctrlKey || event.metaKey || event.altKey) return;
        event.preventDefault();
        event.stopPropagation();
        act();
    });
}

/** Moves so that a moment is in the middle, or at the right where it is now. */
function goTo(options, moment) {
    if (moment === undefined) return;
    const { from, to } = options.view();
    const isEnd = moment >= options.now();
    options.moved({ from: moment - (to - from) * (isEnd ? 1 : 0.5), to: moment + (isEnd ? 0 : (to - from) * 0.5) });
}

function selectNext(options, by) {
    const all = options.events().filter((one) => !options.isHidden(one.kind) && !isQuiet(one.kind));
    const { from, to } = options.view();
    const chosen = options.selected();
    let at = all.findIndex((one) => one.number === chosen);
    if (at >= 0) at += by;
    else at = by > 0 ? all.findIndex((one) => one.time >= from) : all.findLastIndex((one) => one.time <= to);
    const next = all[at];
    if (!next) return;
    options.select(next.number);
    if (next.time < from || next.time > to) goTo(options, next.time);
}

function hit(p, x, y) {
    let best = null;
    for (const one of p.all) {
        if (p.options.isHidden(one.kind)) continue;
        const place = placeOf(p, one);
        if (!place) continue;
        const far = Math.hypot(place.x - x, isQuiet(one.kind) ? Math.max(place.top - y, 0, y - place.y) : place.y - y)
            + (isQuiet(one.kind) ? 6 : 0);
        if (far < 14 && far <= (best?.far ?? Infinity)) best = { one, far };
    }
    return best?.one ?? null;
}

function showTip(event, p, tip) {
    const one = hit(p, event.offsetX, event.offsetY);
    p.canvas.style.cursor = one ? "pointer" : "grab";
    tip.hidden = !one;
    if (!one) return;
    tip.replaceChildren(h("b", null, exact(one.time)), " ", named(one.text, 200));
    const isRight = event.offsetX > p.canvas.clientWidth / 2;
    tip.style.left = isRight ? "" : `${event.offsetX + 14}px`;
    tip.style.right = isRight ? `${p.canvas.clientWidth - event.offsetX + 14}px` : "";
    tip.style.top = `${event.offsetY + 14}px`;
}

// MARK: Drawing

function placeOf(p, one) {
    const ids = p.ids ?? (p.ids = new Map(p.options.lanes().map((lane, at) => [lane.id, at])));
    const lane = ids.get(one.tracker);
    if (lane === undefined) return null;
    const tall = laneHeight(ids.size);
    const y = lane * tall + tall * (isQuiet(one.kind) ? 0.97 : level[one.kind] ?? 0.56);
    return { x: xOf(p, one.time), y, top: y - tall * 0.28, tall };
}

function drawAll(p) {
    const room = ready(p.canvas);
    if (!room) return;
    const { pen, width, height } = room;
    const { options, all, view } = p;
    const shown = all.filter((one) => !options.isHidden(one.kind));
    const chosen = options.selected();
    const lit = chosen === null ? null : cone(all, chosen);
    const bright = lit && new Set([chosen, ...lit.causes, ...lit.effects]);
    drawGround(pen, p, width, height);
    pen.save();
    pen.beginPath();
    pen.rect(gutterOf(p.canvas), 0, width - gutterOf(p.canvas), height);
    pen.clip();
    drawSpans(pen, p);
    const seen = shown.filter((one) => one.time >= view.from - 1000 && one.time <= view.to + 1000);
    drawCommits(pen, p, seen, bright);
    if (lit) drawEdges(pen, p, lit.edges, new Set(lit.causes), 0.9);
    else if (view.to - view.from < 20_000) drawEdges(pen, p, edgesOf(seen), null, 0.35);
    drawGlyphs(pen, p, seen, bright, chosen);
    pen.restore();
}

function drawGround(pen, p, width, height) {
    const all = p.options.lanes();
    const tall = laneHeight(all.length);
    pen.textBaseline = "middle";
    all.forEach((lane, at) => {
        pen.fillStyle = property("line");
        pen.fillRect(0, (at + 1) * tall - 0.5, width, 1);
        pen.fillStyle = property("ink");
        pen.textAlign = "left";
        pen.font = `600 12px ${property("font")}`;
        const isShort = gutterOf(p.canvas) < 60;
        pen.fillText(isShort ? String(lane.id) : lane.name, isShort ? 10 : 6, at * tall + tall / 2,
            gutterOf(p.canvas) - 10);
    });
    const { from, to } = p.view;
    const by = timeStep(to - from, (width - gutterOf(p.canvas)) / 110);
    const offset = new Date(to).getTimezoneOffset() * 60_000;
    pen.font = `11px ${property("font")}`;
    pen.textAlign = "center";
    for (let moment = Math.ceil((from - offset) / by) * by + offset; moment <= to; moment += by) {
        const x = Math.round(xOf(p, moment));
        pen.fillStyle = property("line");
        pen.fillRect(x, 0, 1, height - axis);
        const text = by < 1000 ? exact(moment) : by < 60_000 ? time(moment) : time(moment).slice(0, 5);
        const half = pen.measureText(text).width / 2;
        pen.fillStyle = property("ink-2");
        pen.fillText(text, Math.min(Math.max(x, gutterOf(p.canvas) + half), width - half - 2), height - axis / 2 + 2);
    }
    const now = xOf(p, p.options.now());
    if (now < gutterOf(p.canvas) || now > width) return;
    pen.fillStyle = property("accent");
    pen.fillRect(now, 0, 1, height - axis);
}

/** Who is master is a band along its lane; what is broken shades it. */
function drawSpans(pen, p) {
    const ids = p.options.lanes().map((lane) => lane.id);
    const tall = laneHeight(ids.length);
    const end = p.options.now();
    const band = (one, color, alpha, top, size) => {
        const lane = ids.indexOf(one.tracker);
        if (lane < 0) return;
        const left = Math.max(xOf(p, Math.max(one.time, p.view.from)), gutterOf(p.canvas));
        const right = xOf(p, Math.min(one.end ?? end, p.view.to));
        if (right <= left) return;
        pen.fillStyle = property(color);
        pen.globalAlpha = alpha;
        pen.fillRect(left, lane * tall + top, right - left, size);
        pen.globalAlpha = 1;
    };
    for (const one of masterships(p.all, p.options.masterNow())) band(one, "accent", 0.14, 1, tall - 2);
    for (const one of outages(p.all)) band(one, "bad", 0.16, 1, tall - 2);
}

function drawCommits(pen, p, seen, bright) {
    const commits = seen.filter((one) => isQuiet(one.kind));
    const most = Math.max(...commits.map((one) => one.count ?? 1), 1);
    const wide = Math.max(xOf(p, p.view.from + 1000) - gutterOf(p.canvas) - 1, 1);
    pen.fillStyle = property(look("commit").color);
    for (const one of commits) {
        const place = placeOf(p, one);
        if (!place) continue;
        const tall = Math.max(((one.count ?? 1) / most) * place.tall * 0.28, 1);
        pen.globalAlpha = bright ? (bright.has(one.number) ? 0.9 : 0.12) : 0.4;
        pen.fillRect(place.x - wide, place.y - tall, Math.min(wide, 40), tall);
    }
    pen.globalAlpha = 1;
}

function edgesOf(seen) {
    const numbers = new Set(seen.map((one) => one.number));
    return seen.flatMap((one) => (one.causes ?? []).filter((cause) => numbers.has(cause)).map((cause) => [cause,
        one.number]));
}

function drawEdges(pen, p, edges, causes, alpha) {
    const byNumber = new Map(p.all.map((one) => [one.number, one]));
    pen.globalAlpha = alpha;
    pen.lineWidth = causes ? 1.5 : 1;
    for (const [from, to] of edges) {
        const [a, b] = [byNumber.get(from), byNumber.get(to)].map((one) => one && placeOf(p, one));
        if (!a || !b) continue;
        pen.strokeStyle = property(!causes ? "ink-2" : causes.has(from) ? "hue-4" : "hue-3");
        const bend = Math.max(Math.abs(b.x - a.x) / 2, 6);
        pen.beginPath();
        pen.moveTo(a.x, a.y);
        pen.bezierCurveTo(a.x + bend, a.y, b.x - bend, b.y, b.x, b.y);
        pen.stroke();
    }
    pen.globalAlpha = 1;
}

function drawGlyphs(pen, p, seen, bright, chosen) {
    pen.textAlign = "center";
    pen.textBaseline = "middle";
    pen.font = `14px ${property("font")}`;
    const last = new Map();
    for (const one of seen) {
        if (isQuiet(one.kind)) continue;
        const place = placeOf(p, one);
        if (!place) continue;
        // Of many at one spot, one is drawn.
        const spot = `${one.tracker} ${one.kind}`;
        if (one.number !== chosen && !bright?.has(one.number) && place.x - (last.get(spot) ?? -99) < 3) continue;
        last.set(spot, place.x);
        const { glyph, color } = look(one.kind);
        pen.globalAlpha = bright && !bright.has(one.number) ? 0.2 : 1;
        pen.fillStyle = property(color);
        pen.fillText(glyph, place.x, place.y);
        if (one.number === chosen) {
            pen.strokeStyle = property("ink");
            pen.lineWidth = 1.5;
            pen.beginPath();
            pen.arc(place.x, place.y, 10, 0, 7);
            pen.stroke();
        }
    }
    pen.globalAlpha = 1;
}
