// What all drawings share: a canvas as sharp as the screen, colours from the style sheet, ticks at round values.

import { onEnd, signal } from "./signals.js";

/** Counts up when colours or sizes have changed, so that drawings are drawn anew. */
export const appearance = signal(0);

const changed = () => (appearance.value += 1);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", changed);
new MutationObserver(changed).observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });

/** The value of a custom property, such as a colour. */
export const property = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

/** How many colours there are for things in a row; they go round. */
export const hues = 8;

/** The colour of the n-th of several things, from 0. */
export const hue = (n) => property(`hue-${(n % hues) + 1}`);

/**
 * Readies a canvas to be drawn on in CSS pixels. Returns null while it has no room.
 *
 * `size` is its size where that is known: to ask for it makes the browser lay the page out anew.
 */
export function ready(canvas, size = null) {
    const { width, height } = size ?? { width: canvas.clientWidth, height: canvas.clientHeight };
    if (!width || !height) return null;
    const ratio = devicePixelRatio || 1;
    if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
        canvas.width = Math.round(width * ratio);
        canvas.height = Math.round(height * ratio);
    }
    const pen = canvas.getContext("2d");
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, width, height);
    pen.font = `11px ${property("font")}`;
    return { pen, width, height };
}

/** Calls `draw(size)` when the canvas has another size, until the scope ends. */
export function whenSized(canvas, draw) {
    const observer = new ResizeObserver((all) => draw(all.at(-1).contentRect));
    observer.observe(canvas);
    onEnd(() => observer.disconnect());
}

/** A round step, so that about `wanted` of it make `range`: 1, 2 or 5 times a power of ten. */
export function step(range, wanted) {
    const rough = range / Math.max(wanted, 1);
    const power = 10 ** Math.floor(Math.log10(rough));
    return power * ([1, 2, 5].find((one) => one * power >= rough) ?? 10);
}

/** As `step`, for bytes: 1, 2, 5, 10, … 500 times a power of 1024. */
export function byteStep(range, wanted) {
    const rough = range / Math.max(wanted, 1);
    const power = 1024 ** Math.max(Math.floor(Math.log2(Math.max(rough, 1)) / 10), 0);
    return power * ([1, 2, 5, 10, 20, 50, 100, 200, 500].find((one) => one * power >= rough) ?? 1024);
}

const timeSteps = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900,
    1800,
    3600, 7200, 21_600, 43_200, 86_400];

/** A round step of time, in milliseconds. */
export function timeStep(range, wanted) {
    const rough = range / Math.max(wanted, 1) / 1000;
    return 1000 * (timeSteps.find((one) => one >= rough) ?? 86_400 * Math.ceil(rough / 86_400));
}
