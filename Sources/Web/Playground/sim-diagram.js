// The space-time diagram: a lane a tracker, time to the right, messages as arrows. Two canvases lie upon each other:
// the lower one changes with what is seen, the upper one with the step, so that a step costs little.
//
// Wheel and pinch zoom, a drag moves, a click chooses a message or a step, or goes to a time.

import { appearance, whenSized } from "./canvas.js";
import { h } from "./dom.js";
import { effect, onEnd } from "./signals.js";
import { paintGround } from "./sim-drawing.js";
import { hit, paintNow } from "./sim-now.js";
import { onceAFrame, painted } from "./sim-place.js";
import { secondsText } from "./sim-run.js";

const axis = 24;
const stripRow = 15;
const mostStripRows = 3;

/**
 * @param m the page's model.
 * @param options { run: a function that gives the run to draw, label, isMain }.
 */
export function diagram(m, { run, label, isMain }) {
    const ground = h("canvas.sim-ground", { "aria-hidden": "true" });
    const now = h("canvas.sim-now", {
        tabindex: "0", role: "application", "aria-roledescription": "space-time diagram", "aria-label": label,
    });
    const tip = h("div.tip", { hidden: true });
    const box = h("div.sim-diagram", { "data-run": isMain ? "main" : "beside" }, ground, now, tip);
    const picture = { ground, now, hover: null, isMain };
    const look = () => {
        const one = run();
        if (!one) return null;
        const lanes = one.names.map((_, place) => place).filter((place) => !m.hiddenLanes.value.has(place));
        const troubles = strips(one, lanes);
        const tall = laneHeight(lanes.length, m.beside.value !== null);
        box.style.height = `${troubles.rows * stripRow + lanes.length * tall + axis + 6}px`;
        return Object.assign(picture, {
            run: one, lanes, tall, troubles, top: troubles.rows * stripRow + 4, axis, stripRow,
            view: m.view.value, hidden: m.hidden.value, step: m.step.value, time: timeNow(m, one),
            chosen: isMain ? m.chosen.value : null, isWhole: m.isWhole.value,
            parting: m.parting.value === null ? null : one.timeOf(m.parting.value),
        });
    };
    const plan = onceAFrame((isGround) => {
        if (!look()) return false;
        if (isGround) paintGround(picture);
        paintNow(picture);
        return true;
    });
    effect(() => {
        appearance.value;
        for (const one of [m.view, m.hidden, m.hiddenLanes, m.beside]) one.value;
        run();
        plan(true);
    });
    effect(() => {
        for (const one of [m.step, m.chosen, m.isWhole, m.parting, m.run]) one.value;
        plan(false);
    });
    whenSized(ground, (size) => {
        picture.size = size;
        plan(true);
    });
    steer(m, picture, now, tip, () => plan(false), box);
    return box;
}

/** The time up to which it is drawn as past: of the run that is shown, also in the one beside it. */
const timeNow = (m, one) => {
    const main = m.run.value;
    return main && main !== one ? main.timeOf(m.step.value) : one.timeOf(m.step.value);
};

function laneHeight(count, areTwo) {
    const room = (innerWidth < 761 ? 300 : Math.max(innerHeight * 0.44, 260)) * (areTwo ? 0.66 : 1);
    return Math.min(Math.max(Math.floor(room / Math.max(count, 1)), count > 12 ? 20 : areTwo ? 26 : 30), 104);
}

const kept = new WeakMap();

/** What was wrong for a while, each in the first row that is free: { rows, all: [{ …, row }] }. */
function strips(run, lanes) {
    if (kept.has(run)) return kept.get(run);
    const ends = [];
    const all = run.periods.filter(([kind]) => kind !== "down").map(([kind, from, until, places, text]) => {
        let row = ends.findIndex((end) => end <= from);
        if (row < 0) row = ends.length < mostStripRows ? ends.length : ends.indexOf(Math.min(...ends));
        ends[row] = Math.max(ends[row] ?? 0, until ?? run.end);
        return { kind, from, until: until ?? run.end, isOpen: until === null, places, text, row };
    });
    const result = { rows: ends.length, all };
    kept.set(run, result);
    return result;
}

// MARK: Steering

function steer(m, picture, canvas, tip, redraw, box) {
    const pointers = new Map();
    let travelled = 0;
    const timeAt = (x) => painted(picture).timeAt(x);
    const on = (name, run, how) => {
        canvas.addEventListener(name, run, how);
        onEnd(() => canvas.removeEventListener(name, run, how));
    };
    on("wheel", (event) => {
        if (!picture.run) return;
        event.preventDefault();
        if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
            m.pan((event.deltaX || event.deltaY) / 1200);
        } else {
            m.zoom(1.0018 ** Math.max(Math.min(event.deltaY, 400), -400), timeAt(event.offsetX));
        }
    }, { passive: false });
    on("pointerdown", (event) => {
        canvas.setPointerCapture(event.pointerId);
        pointers.set(event.pointerId, event.offsetX);
        travelled = 0;
    });
    on("pointermove", (event) => {
        if (!picture.run) return;
        const before = pointers.get(event.pointerId);
        if (before === undefined) return point(event);
        tip.hidden = true;
        const others = [...pointers].filter(([id]) => id !== event.pointerId);
        if (others.length) {
            const apart = (x) => Math.max(Math.abs(x - others[0][1]), 8);
            m.zoom(apart(before) / apart(event.offsetX), timeAt((others[0][1] + event.offsetX) / 2));
        } else {
            m.pan((before - event.offsetX) / painted(picture).wide);
        }
        travelled += Math.abs(event.offsetX - before);
        pointers.set(event.pointerId, event.offsetX);
    });
    const release = (event) => {
        const isClick = pointers.delete(event.pointerId) && travelled < 4 && event.type === "pointerup";
        if (isClick && picture.run) choose(event);
    };
    on("pointerup", release);
    on("pointercancel", release);
    on("pointerleave", () => {
        tip.hidden = true;
        if (picture.hover === null) return;
        picture.hover = null;
        redraw();
    });

    function choose(event) {
        const found = hit(picture, event.offsetX, event.offsetY);
        if (!picture.isMain) return m.goTo(m.run.peek().stepAt(timeAt(event.offsetX)));
        if (found?.message !== undefined) {
            m.choose(found.message);
        } else if (found?.step) {
            m.choose(null);
            m.goTo(found.step);
        } else {
            m.choose(null);
            m.goTo(picture.run.stepAt(timeAt(event.offsetX)));
        }
    }

    function point(event) {
        const found = hit(picture, event.offsetX, event.offsetY);
        canvas.style.cursor = found ? "pointer" : "grab";
        tip.hidden = !found;
        const hover = found?.message ?? null;
        if (hover !== picture.hover) {
            picture.hover = hover;
            redraw();
        }
        if (!found) return;
        tip.replaceChildren(...tipOf(picture.run, found));
        const isRight = event.offsetX > box.clientWidth / 2;
        tip.style.left = isRight ? "" : `${event.offsetX + 14}px`;
        tip.style.right = isRight ? `${box.clientWidth - event.offsetX + 14}px` : "";
        tip.style.top = `${Math.min(event.offsetY + 14, box.clientHeight - 30)}px`;
    }
}

function tipOf(run, hit) {
    if (hit.text) return [document.createTextNode(hit.text)];
    if (hit.step) {
        return [h("b", null, secondsText(run.timeOf(hit.step))), " ",
            h("span", null, run.lines[hit.step].slice(0, 240))].map(asNode);
    }
    return [h("b", null, run.messageName(hit.message)), " ", h("span", null, summary(run, hit.message))].map(asNode);
}

const asNode = (one) => (one instanceof Node ? one : document.createTextNode(one));

/** From whom to whom a message goes, when, and what became of it. */
export function summary(run, message) {
    const { sentAt, arrivedAt, fate } = run.messages;
    const way = `${run.partyOf(message, true)} → ${run.partyOf(message, false)}`;
    const sent = secondsText(sentAt[message]);
    const isLost = fate[message] === 1;
    if (isLost && !(arrivedAt[message] > sentAt[message])) return `${way}, sent at ${sent}; it is lost at once`;
    if (isLost) return `${way}, sent at ${sent}; it is lost at ${secondsText(arrivedAt[message])}`;
    if (Number.isNaN(arrivedAt[message])) return `${way}, sent at ${sent}; it is under way, or waits`;
    const by = (arrivedAt[message] - sentAt[message]) / 1000;
    return `${way}, sent at ${sent}, ${fate[message] === 3 ? "again " : ""}after ${by.toFixed(by < 10 ? 2 : 0)} ms`
        + (fate[message] === 2 ? "; nobody is there" : "");
}
