// The pieces of a torrent as a picture: a square each, or one for several where there are too many, and which are there.

import { appearance, property, ready, whenSized } from "/console/canvas.js";
import { h } from "/console/dom.js";
import { bytes, count, counted } from "/console/format.js";
import { effect, signal } from "/console/signals.js";

const size = 10;
const gap = 1.5;
const rowsMost = 18;

/** The bits of a bit field (BEP 3), which comes as base64: one byte a piece. Null where it is not known. */
export function bitsOf(text, length) {
    if (!text || !(length > 0)) return null;
    let raw;
    try {
        raw = atob(text);
    } catch {
        return null;
    }
    const bits = new Uint8Array(length);
    for (let at = 0; at < length; at += 1) bits[at] = (raw.charCodeAt(at >> 3) >> (7 - (at & 7))) & 1;
    return bits;
}

/** What the pieces of a detail come to. */
export function pieceCounts({ pieces, wantedBits }) {
    const length = pieces?.count ?? 0;
    const have = bitsOf(pieces?.bits, length);
    const wanted = bitsOf(wantedBits, length);
    let [there, unwanted] = [0, 0];
    for (let at = 0; at < length; at += 1) {
        if (have?.[at]) there += 1;
        else if (wanted && !wanted[at]) unwanted += 1;
    }
    return { length, have, wanted, there, unwanted };
}

/** The picture; `detail` is a signal. */
export function piecesView(detail) {
    const pointed = signal(null);
    let grid = null;
    const canvas = h("canvas.pieces", {
        role: "img", tabindex: "0", "aria-label": () => summary(pieceCounts(detail.value ?? {}), detail.value),
        onpointermove: (event) => (pointed.value = pieceAt(grid, event.offsetX, event.offsetY)),
        onpointerleave: () => (pointed.value = null),
        onblur: () => (pointed.value = null),
        onkeydown: (event) => {
            const moves = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -(grid?.columns ?? 1), ArrowDown: grid?.columns ?? 1 };
            if (event.key === "Escape") pointed.value = null;
            if (!(event.key in moves) || !grid) return;
            event.preventDefault();
            pointed.value = Math.min(Math.max((pointed.peek() ?? -1) + moves[event.key], 0), grid.cells - 1);
        },
    });
    const draw = () => (grid = drawn(canvas, pieceCounts(detail.peek() ?? {}), pointed.peek()));
    effect(() => {
        detail.value;
        pointed.value;
        appearance.value;
        draw();
    });
    // Not at once: it has another height afterwards.
    whenSized(canvas, () => requestAnimationFrame(draw));
    return h("section.card.pieces-card", { hidden: () => !(detail.value?.pieces?.count > 0) },
        h("div.heading", null, h("h2", null, "Pieces"),
            h("span.muted", null, () => summary(pieceCounts(detail.value ?? {}), detail.value))),
        canvas,
        h("div.piece-legend", null,
            h("span", null, h("span.piece.have", { "aria-hidden": "true" }), "verified"),
            h("span", null, h("span.piece", { "aria-hidden": "true" }), "missing"),
            h("span", { hidden: () => pieceCounts(detail.value ?? {}).unwanted === 0 },
                h("span.piece.unwanted", { "aria-hidden": "true" }), "not wanted"),
            h("span.told", { role: "status" }, () => told(pointed.value, grid, detail.value))));
}

function summary({ length, have, there, unwanted }, detail) {
    if (!have) return `${counted(length, "piece")} of ${bytes(detail?.pieces?.length)}; which are there is not known yet`;
    const rest = unwanted ? `, ${count(unwanted)} not wanted` : "";
    return `${count(there)} of ${counted(length, "piece")} of ${bytes(detail?.pieces?.length)} verified${rest}`;
}

function told(cell, grid, detail) {
    if (cell === null || !grid) return "";
    const { length, have, wanted } = pieceCounts(detail ?? {});
    const [from, to] = [cell * grid.per, Math.min((cell + 1) * grid.per, length)];
    if (to - from === 1) {
        return `Piece ${count(from)}: ${have?.[from] ? "verified" : wanted && !wanted[from] ? "not wanted" : "missing"}`;
    }
    let there = 0;
    for (let at = from; at < to; at += 1) there += have?.[at] ?? 0;
    return `Pieces ${count(from)} to ${count(to - 1)}: ${count(there)} of ${count(to - from)} verified`;
}

function pieceAt(grid, x, y) {
    if (!grid) return null;
    const cell = Math.floor(y / size) * grid.columns + Math.min(Math.floor(x / size), grid.columns - 1);
    return cell >= 0 && cell < grid.cells ? cell : null;
}

function drawn(canvas, { length, have, wanted }, pointed) {
    const columns = Math.floor(canvas.clientWidth / size);
    if (!columns || !length) return null;
    const per = Math.ceil(length / (columns * rowsMost));
    const cells = Math.ceil(length / per);
    canvas.style.height = `${Math.ceil(cells / columns) * size}px`;
    const room = ready(canvas);
    if (!room) return null;
    const { pen } = room;
    const [there, missing, edge, ink] = ["accent", "line", "edge", "ink"].map(property);
    for (let cell = 0; cell < cells; cell += 1) {
        const [from, to] = [cell * per, Math.min((cell + 1) * per, length)];
        let [some, wants] = [0, 0];
        for (let at = from; at < to; at += 1) {
            some += have?.[at] ?? 0;
            wants += wanted?.[at] ?? 1;
        }
        const [x, y] = [(cell % columns) * size, Math.floor(cell / columns) * size];
        const side = size - gap;
        if (wants === 0 && some === 0) {
            pen.strokeStyle = edge;
            pen.lineWidth = 1;
            pen.globalAlpha = 0.6;
            pen.strokeRect(x + 0.5, y + 0.5, side - 1, side - 1);
        } else {
            pen.globalAlpha = 1;
            pen.fillStyle = missing;
            pen.fillRect(x, y, side, side);
            if (some) {
                // What is not all there is seen to be so.
                pen.globalAlpha = some === to - from ? 1 : 0.2 + (0.55 * some) / (to - from);
                pen.fillStyle = there;
                pen.fillRect(x, y, side, side);
            }
        }
        pen.globalAlpha = 1;
        if (cell !== pointed) continue;
        pen.strokeStyle = ink;
        pen.lineWidth = 1.5;
        pen.strokeRect(x, y, side, side);
    }
    return { columns, per, cells };
}
