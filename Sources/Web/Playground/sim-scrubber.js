// The whole run in one strip: how much happens when, who was master, what went wrong; and where one is in it. It is a
// slider to screen readers and keys.

import { appearance, hue, property, ready, whenSized } from "./canvas.js";
import { h } from "./dom.js";
import { effect, onEnd } from "./signals.js";
import { onceAFrame, palette } from "./sim-place.js";
import { secondsText } from "./sim-run.js";
import { stepOf, whatIfs } from "./sim-words.js";

const inset = 8;

export function scrubber(m) {
    const ground = h("canvas.sim-ground", { "aria-hidden": "true" });
    const now = h("canvas.sim-now", {
        tabindex: "0", role: "slider", "aria-label": "Step of the run", "aria-valuemin": "0",
        "aria-valuemax": () => m.run.value?.count ?? 0, "aria-valuenow": () => m.step.value,
        "aria-valuetext": () => (m.run.value
            ? `Step ${m.step.value} of ${m.run.value.count}, ${secondsText(m.run.value.timeOf(m.step.value), 3)}` : ""),
    });
    let size = null;
    const plan = onceAFrame((isGround) => {
        const run = m.run.peek();
        if (!run) return false;
        if (isGround) drawGround(m, run, ready(ground, size));
        drawNow(m, run, ready(now, size));
        return true;
    });
    effect(() => {
        for (const one of [appearance, m.run, m.found, m.parting]) one.value;
        plan(true);
    });
    effect(() => {
        for (const one of [m.step, m.view]) one.value;
        plan(false);
    });
    whenSized(ground, (known) => {
        size = known;
        plan(true);
    });
    scrub(m, now, () => size);
    return h("div.sim-scrubber", null, ground, now);
}

/** Where a time is on the strip, and the other way round. */
const xOf = (run, width, time) => inset + (time / run.end) * (width - 2 * inset);

function scrub(m, canvas, size) {
    let isDown = false;
    let left = 0;
    const go = (event) => {
        const run = m.run.peek();
        if (!run) return;
        const share = (event.clientX - left - inset) / Math.max((size()?.width ?? canvas.clientWidth) - 2 * inset, 1);
        m.goTo(run.stepAt(Math.min(Math.max(share, 0), 1) * run.end), true);
    };
    const on = (name, run) => {
        canvas.addEventListener(name, run);
        onEnd(() => canvas.removeEventListener(name, run));
    };
    on("pointerdown", (event) => {
        canvas.setPointerCapture(event.pointerId);
        isDown = true;
        left = canvas.getBoundingClientRect().left;
        go(event);
    });
    on("pointermove", (event) => isDown && go(event));
    on("pointerup", () => (isDown = false));
    on("pointercancel", () => (isDown = false));
    on("keydown", (event) => {
        const far = Math.max(Math.round((m.run.peek()?.count ?? 0) / 20), 1);
        const by = { ArrowUp: 1, ArrowDown: -1, PageUp: far, PageDown: -far }[event.key];
        if (!by || event.ctrlKey || event.metaKey || event.altKey) return;
        event.preventDefault();
        event.stopPropagation();
        m.goTo(m.step.peek() + by);
    });
}

function drawGround(m, run, room) {
    if (!room) return;
    const { pen, width, height } = room;
    const x = (time) => xOf(run, width, time);
    const foot = height - 9;
    pen.fillStyle = property("sunken");
    pen.fillRect(inset, foot, width - 2 * inset, 5);
    for (const [kind, from, until] of run.periods) {
        if (kind === "down") continue;
        pen.fillStyle = property("bad");
        pen.globalAlpha = 0.1;
        pen.fillRect(x(from), 4, Math.max(x(until ?? run.end) - x(from), 1), foot - 4);
    }
    pen.globalAlpha = 1;
    drawBusy(run, pen, width, foot);
    drawMasters(run, pen, x, foot);
    const tick = (time, color, top, wide = 2) => {
        pen.fillStyle = property(color);
        pen.fillRect(x(time) - wide / 2, top, wide, foot - top);
    };
    for (const one of m.found.peek().slice(0, 2000)) tick(run.timeOf(one), "hue-6", foot - 12, 1.5);
    for (const [, time, , kind] of run.marks) if (kind === "becameMaster") tick(time, "accent", 14);
    for (const one of whatIfs(run.info.words)) tick(run.timeOf(stepOf(one)), "hue-4", 8, 3);
    for (const one of run.violations) tick(run.timeOf(one.step), "bad", 2, 3);
}

/** How many steps there are, point by point. */
function drawBusy(run, pen, width, foot) {
    const slots = Math.max(Math.floor((width - 2 * inset) / 3), 1);
    const counts = new Uint32Array(slots);
    for (let step = 1; step <= run.count; step += 1) {
        counts[Math.min(Math.floor((run.times[step] / run.end) * slots), slots - 1)] += 1;
    }
    const most = Math.max(...counts, 1);
    pen.fillStyle = property("edge");
    pen.globalAlpha = 0.55;
    counts.forEach((count, at) => {
        const tall = Math.sqrt(count / most) * (foot - 12);
        pen.fillRect(inset + at * 3, foot - 2 - tall, 2, tall);
    });
    pen.globalAlpha = 1;
}

/** Who was master, as a stripe at the foot: each tracker has a colour of its own. */
function drawMasters(run, pen, x, foot) {
    run.names.forEach((_, place) => {
        const all = run.rolesOf(place);
        all.forEach(([, time, , condition], at) => {
            if (condition !== "master") return;
            pen.fillStyle = hue(place);
            pen.fillRect(x(time), foot, Math.max(x(all[at + 1]?.[1] ?? run.end) - x(time), 1), 5);
        });
    });
}

function drawNow(m, run, room) {
    if (!room) return;
    const { pen, width, height } = room;
    const c = palette();
    const { from, to } = m.view.peek();
    const x = (time) => xOf(run, width, Math.min(Math.max(time, 0), run.end));
    pen.fillStyle = c.accent;
    pen.globalAlpha = 0.12;
    pen.fillRect(x(from), 1, Math.max(x(to) - x(from), 2), height - 2);
    pen.globalAlpha = 1;
    const at = x(run.timeOf(m.step.peek()));
    pen.fillRect(at - 1, 0, 2, height);
    pen.beginPath();
    pen.arc(at, height - 6.5, 5.5, 0, 7);
    pen.fill();
    pen.strokeStyle = c.surface;
    pen.lineWidth = 1.5;
    pen.stroke();
}
