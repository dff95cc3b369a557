// Time series on a canvas: lines over the last minutes, with what happened marked on the axis.
//
// A chart is a figure: its caption says what it shows, its legend what the values are, now or under the pointer. All
// charts share the pointer's time, so that one sees what went together. With the keyboard: arrows move it, Esc lets it
// go.

import { appearance, property, ready, step, timeStep, whenSized } from "./canvas.js";
import { h, list } from "./dom.js";
import { computed, effect, signal } from "./signals.js";
import { time } from "./format.js";

/** The time under the pointer, in milliseconds; null where there is none. */
const pointed = signal(null);

const margin = { left: 62, right: 12, top: 8, bottom: 26 };
/** Milliseconds between samples beyond which there is a gap rather than a line. */
const gap = 2500;

/**
 * A chart.
 *
 * @param options { id, title, note, format, axis, step, isWhole, tools, lines, marks, now, span }:
 *     lines() gives [{ name, color (a custom property), points: [[time, value or null]], isDashed, pane }];
 *     marks() gives [{ time, end, kind, text }]; now() and span() in milliseconds; format and axis make text of a
 *     value, step makes the axis's steps where they are not decimal, and isWhole says that there are no halves.
 */
export function chart(options) {
    const lines = computed(options.lines);
    const canvas = h("canvas", {
        id: options.id, tabindex: "0", role: "img", "aria-label": () => summary(options, lines.value),
        onpointermove: (event) => (pointed.value = timeAt(canvas, options, event.offsetX)),
        onpointerleave: () => (pointed.value = null),
        onblur: () => (pointed.value = null),
        onkeydown: (event) => {
            const moves = { ArrowLeft: -1, ArrowRight: 1, PageUp: -30, PageDown: 30 };
            if (event.key === "Escape") pointed.value = null;
            if (!(event.key in moves)) return;
            event.preventDefault();
            const from = pointed.peek() ?? options.now();
            const to = from + moves[event.key] * 1000;
            pointed.value = Math.min(Math.max(to, options.now() - options.span()), options.now());
        },
    });
    const draw = () => drawChart(canvas, options, lines.peek(), pointed.peek());
    effect(() => {
        lines.value;
        options.marks();
        pointed.value;
        appearance.value;
        options.span();
        draw();
    });
    whenSized(canvas, draw);
    return h("figure.chart", null,
        h("figcaption", null, h("h2", null, options.title), h("span.note", null, options.note), options.tools),
        h("div.legend", null,
            list(h("ul", null), () => lines.value, (one) => one.name, (line) => h("li", null,
                h("span.swatch", { class: () => ({ dashed: line.value.isDashed }),
                    style: () => ({ "--swatch": `var(--${line.value.color})` }) }),
                h("span", null, () => line.value.name), " ",
                h("b", null, () => options.format(valueAt(line.value.points, pointed.value)))))),
        canvas,
        h("p.told", null, () => told(options)));
}

/** What the line below a chart tells: the time under the pointer, and what happened there. */
function told(options) {
    const at = pointed.value;
    if (at === null) return "";
    const near = options.span() / 60;
    const marks = options.marks().filter((one) => one.time - near <= at && at <= (one.end ?? one.time) + near);
    return [time(at), ...marks.slice(-2).map((one) => one.text)].join(" · ");
}

function summary(options, lines) {
    const parts = lines.map((line) => {
        const values = line.points.map(([, value]) => value).filter(Number.isFinite);
        if (!values.length) return `${line.name}: no values`;
        return `${line.name} ${options.format(values.at(-1))}, `
            + `between ${options.format(Math.min(...values))} and ${options.format(Math.max(...values))}`;
    });
    return `${options.title}, the last ${Math.round(options.span() / 60_000)} minutes: ${parts.join("; ")}`;
}

function valueAt(points, at) {
    if (at === null) return points.at(-1)?.[1];
    let best;
    for (const point of points) {
        if (Math.abs(point[0] - at) <= Math.abs((best?.[0] ?? -Infinity) - at)) best = point;
    }
    return best && Math.abs(best[0] - at) < gap ? best[1] : undefined;
}

function timeAt(canvas, options, x) {
    const room = canvas.clientWidth - margin.left - margin.right;
    const share = Math.min(Math.max((x - margin.left) / room, 0), 1);
    return options.now() - options.span() * (1 - share);
}

function drawChart(canvas, options, lines, at) {
    const room = ready(canvas);
    if (!room) return;
    const { pen, width, height } = room;
    const end = options.now();
    const begin = end - options.span();
    const x = (moment) => margin.left + ((moment - begin) / (end - begin)) * (width - margin.left - margin.right);
    const bottom = height - margin.bottom;
    drawMarks(pen, options.marks(), x, begin, bottom, width);
    drawTime(pen, begin, end, x, bottom, width);
    const panes = [...new Set(lines.map((line) => line.pane ?? 0))];
    const each = (bottom - margin.top) / Math.max(panes.length, 1);
    panes.forEach((pane, number) => {
        const top = margin.top + number * each;
        const of = lines.filter((line) => (line.pane ?? 0) === pane);
        drawPane(pen, of, x, begin, { top: top + (number ? 6 : 0), bottom: top + each, width }, options,
            panes.length > 1);
    });
    if (at !== null && at >= begin && at <= end) {
        pen.fillStyle = property("ink-2");
        pen.fillRect(Math.round(x(at)), margin.top, 1, bottom - margin.top);
    }
}

function drawPane(pen, lines, x, begin, box, options, isOneOfSeveral) {
    const values = lines.flatMap((line) => line.points.filter(([t]) => t >= begin).map(([,
        v]) => v)).filter(Number.isFinite);
    let least = 0;
    let most = Math.max(...values, 0) || 1;
    if (isOneOfSeveral && values.length) {
        // Each on a scale of its own: what moves is seen, however large it is.
        least = Math.min(...values);
        const room = Math.max((most - least) * 0.15, most * 0.002);
        [least, most] = [Math.max(least - room, 0), most + room];
    }
    const by = Math.max((options.step ?? step)(most - least, Math.max((box.bottom - box.top) / 42, 2.5)), options.isWhole ? 1 : 0);
    if (!isOneOfSeveral) most = Math.ceil((most * 1.02) / by) * by;
    const y = (value) => box.bottom - ((value - least) / (most - least)) * (box.bottom - box.top);
    pen.textAlign = "right";
    pen.textBaseline = "middle";
    for (let value = Math.ceil(least / by) * by; value <= most + by / 1e3; value += by) {
        pen.fillStyle = property("line");
        pen.fillRect(margin.left, Math.round(y(value)), box.width - margin.left - margin.right, 1);
        pen.fillStyle = property("ink-2");
        pen.fillText((isOneOfSeveral ? options.format : options.axis ?? options.format)(value), margin.left - 7,
            y(value));
    }
    pen.save();
    pen.beginPath();
    pen.rect(margin.left, box.top - 2, box.width - margin.left - margin.right + 5, box.bottom - box.top + 4);
    pen.clip();
    for (const line of lines) drawLine(pen, line, x, y, begin, lines.length === 1 && !isOneOfSeveral ? box.bottom
        : null);
    pen.restore();
}

function drawLine(pen, line, x, y, begin, floor) {
    pen.strokeStyle = pen.fillStyle = property(line.color);
    pen.lineWidth = 1.5;
    pen.lineJoin = "round";
    pen.setLineDash(line.isDashed ? [4, 3] : []);
    for (const run of runs(line.points, begin)) {
        pen.beginPath();
        run.forEach(([t, value], at) => (at ? pen.lineTo(x(t), y(value)) : pen.moveTo(x(t), y(value))));
        pen.stroke();
        if (floor === null) continue;
        pen.lineTo(x(run.at(-1)[0]), floor);
        pen.lineTo(x(run[0][0]), floor);
        pen.globalAlpha = 0.1;
        pen.fill();
        pen.globalAlpha = 1;
    }
    pen.setLineDash([]);
    const last = line.points.at(-1);
    if (!last || !Number.isFinite(last[1])) return;
    pen.beginPath();
    pen.arc(x(last[0]), y(last[1]), 2.5, 0, 7);
    pen.fill();
}

/** The stretches of a line between its gaps. */
function runs(points, begin) {
    const all = [];
    let run = [];
    for (const point of points) {
        if (point[0] < begin - gap) continue;
        const isApart = run.length && point[0] - run.at(-1)[0] > gap;
        if (isApart || !Number.isFinite(point[1])) {
            if (run.length) all.push(run);
            run = [];
        }
        if (Number.isFinite(point[1])) run.push(point);
    }
    if (run.length) all.push(run);
    return all;
}

function drawTime(pen, begin, end, x, bottom, width) {
    const by = timeStep(end - begin, (width - margin.left) / 90);
    const offset = new Date(end).getTimezoneOffset() * 60_000;
    pen.textAlign = "center";
    pen.textBaseline = "alphabetic";
    for (let moment = Math.ceil((begin - offset) / by) * by + offset; moment <= end; moment += by) {
        pen.fillStyle = property("line");
        pen.fillRect(Math.round(x(moment)), bottom, 1, 4);
        const text = by % 60_000 ? time(moment) : time(moment).slice(0, 5);
        const half = pen.measureText(text).width / 2;
        pen.fillStyle = property("ink-2");
        pen.fillText(text, Math.min(x(moment), width - half - 1), bottom + 17);
    }
}

/** Elections are triangles on the axis; faults are shaded from their begin to their end. */
function drawMarks(pen, marks, x, begin, bottom, width) {
    for (const mark of marks) {
        if ((mark.end ?? mark.time) < begin) continue;
        if (mark.kind === "fault") {
            const left = Math.max(x(mark.time), margin.left);
            pen.fillStyle = property("bad");
            pen.globalAlpha = 0.13;
            pen.fillRect(left, margin.top, Math.max(Math.min(x(mark.end), width - margin.right) - left, 1),
                bottom - margin.top);
            pen.globalAlpha = 1;
            pen.fillRect(left, bottom - 1, Math.max(Math.min(x(mark.end), width - margin.right) - left, 1), 2);
        } else {
            pen.fillStyle = property("warn");
            pen.globalAlpha = 0.35;
            pen.fillRect(Math.round(x(mark.time)), margin.top, 1, bottom - margin.top);
            pen.globalAlpha = 1;
            pen.beginPath();
            pen.moveTo(x(mark.time) - 4, bottom + 6);
            pen.lineTo(x(mark.time) + 4, bottom + 6);
            pen.lineTo(x(mark.time), bottom - 1);
            pen.fill();
        }
    }
}
