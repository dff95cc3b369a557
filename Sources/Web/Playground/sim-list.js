// The run as a list that says the same as the diagram: a row a step, of which only those are in the document that are
// seen.

import { h, listen, named } from "./dom.js";
import { counted } from "./format.js";
import { effect, onEnd, signal } from "./signals.js";
import { kindBit, kinds, secondsText } from "./sim-run.js";

const slack = 10;

/** Which steps of a run the filters leave. */
function left(run, m) {
    const wanted = m.search.value ? new Set(m.found.value) : null;
    const hidden = m.hiddenLanes.value;
    const steps = [];
    const bit = m.listKind.value ? kindBit(m.listKind.value) : 0;
    let mask = 0;
    run.names.forEach((_, place) => !hidden.has(place) && (mask |= 1 << place));
    for (let step = 1; step <= run.count; step += 1) {
        if (wanted && !wanted.has(step)) continue;
        if (run.trackers[step] && !(run.trackers[step] & mask)) continue;
        if (bit && run.kinds[step] && !(run.kinds[step] & bit)) continue;
        steps.push(step);
    }
    return steps;
}

export function stepList(m) {
    m.listKind ??= signal("");
    const steps = signal([]);
    effect(() => (steps.value = m.run.value && m.isList.value ? left(m.run.value, m) : []));
    const body = h("tbody", null);
    const [above, below] = [0, 1].map(() => h("tr.spacer", { "aria-hidden": "true" }, h("td", null)));
    const table = h("table.big.sim-table", { "aria-label": "Steps of the run",
        "aria-rowcount": () => steps.value.length + 1 },
    h("thead", null, h("tr", { "aria-rowindex": "1" }, ["Step", "Second", "Kinds", "What happens"].map((name, at) =>
        h(`th.c${at}`, { scope: "col" }, name)))), h("tbody", null, above), body, h("tbody", null, below));
    const box = h("div.scroller", { tabindex: "-1" }, table);

    const tall = () => parseFloat(getComputedStyle(box).getPropertyValue("--row")) || 30;
    const draw = () => {
        const rowTall = tall();
        const all = steps.peek();
        const run = m.run.peek();
        const first = Math.max(Math.floor(box.scrollTop / rowTall) - slack, 0);
        const last = Math.min(Math.ceil((box.scrollTop + box.clientHeight) / rowTall) + slack, all.length);
        above.firstChild.style.height = `${Math.min(first, all.length) * rowTall}px`;
        below.firstChild.style.height = `${Math.max(all.length - last, 0) * rowTall}px`;
        const focused = body.contains(document.activeElement) ? Number(document.activeElement.dataset.step) : null;
        body.replaceChildren(...all.slice(first, last).map((step, at) => row(m, run, step, first + at + 2)));
        if (focused) body.querySelector(`[data-step="${focused}"]`)?.focus({ preventScroll: true });
    };
    const plan = () => requestAnimationFrame(draw);
    const show = () => {
        const at = steps.peek().findLastIndex((one) => one <= m.step.peek());
        if (at < 0) return;
        const rowTall = tall();
        const top = at * rowTall;
        if (top < box.scrollTop || top > box.scrollTop + box.clientHeight - 3 * rowTall) {
            box.scrollTop = Math.max(top - box.clientHeight / 3, 0);
        }
    };
    effect(() => {
        steps.value;
        m.step.value;
        if (!m.isList.value) return;
        requestAnimationFrame(() => {
            show();
            draw();
        });
    });
    listen(box, "scroll", plan, { passive: true });
    const observer = new ResizeObserver(plan);
    observer.observe(box);
    onEnd(() => observer.disconnect());
    return h("div.sim-list", { hidden: () => !m.isList.value },
        h("div.row.tight", null, h("label.inline", null, h("span", null, "Kind"),
            h("select", { onchange: (event) => (m.listKind.value = event.target.value) },
                [["", "all"], ...kinds.map((one) => [one, one])].map(([value, text]) => h("option", { value }, text)))),
        h("span.muted", { role: "status" }, () => counted(steps.value.length, "step"))),
        box);
}

function row(m, run, step, index) {
    const isBroken = run.violations.some((one) => one.step === step);
    const about = kinds.filter((_, bit) => run.kinds[step] & (1 << bit)).join(", ");
    return h(step === m.step.peek() ? "tr.current" : isBroken ? "tr.broken" : "tr", { "aria-rowindex": index,
        "aria-current": step === m.step.peek() ? "true" : null },
    h("td.c0", null, h("button.link", { type: "button", "data-step": step, onclick: () => m.goTo(step) }, step)),
    h("td.c1", null, secondsText(run.times[step]).replace(" s", "")), h("td.c2", null, about),
    h("td.c3.two-lines", { title: run.lines[step] }, named(run.lines[step], 4000)));
}
