// What is run: a seed or a story, and the conditions.

import { h, listen, named } from "./dom.js";
import { computed, effect, onEnd, signal } from "./signals.js";
import { secondsText } from "./sim-run.js";
import { tale } from "./sim-tale.js";
import { joined, parts } from "./sim-words.js";

/** Seeds that are drawn: short enough to be told to somebody. */
const seedRange = 1_000_000;

export const option = (value, text, isChosen) => h("option", { value, selected: isChosen }, text);

/** A field with its name above it. */
export const field = (name, element) => h("label.sim-field", null, h("span", null, name), element);

export function drawnSeed() {
    return (crypto.getRandomValues(new Uint32Array(1))[0] % seedRange) + 1;
}

/** The form that opens a run. */
export function setup(m) {
    const about = () => m.about.value ?? { profiles: [], stresses: [], stories: [] };
    const isStory = signal(false);
    const seed = h("input.sim-seed", { name: "seed", type: "text", inputmode: "numeric", pattern: "[0-9]{1,20}",
        required: true, maxlength: "20", autocomplete: "off" });
    const story = h("select", { name: "story", onchange: () => (story.value ? open() : (isStory.value = false)) });
    const [profile, stress] = ["profile", "stress"].map((name) => h("select", { name }));
    const nodes = h("input", { name: "nodes", type: "number", min: "1", max: "30", placeholder: "any" });
    const seconds = h("input", { name: "seconds", type: "number", min: "1", max: "3600", placeholder: "any" });
    effect(() => {
        const { profiles, stresses, stories } = about();
        story.replaceChildren(option("", "none: a seed", false),
            ...stories.map((one) => option(one.name, one.title ?? one.name, false)));
        profile.replaceChildren(option("", "by the seed", false), ...profiles.map((one) => option(one, one, false)));
        stress.replaceChildren(option("", "none", false), ...stresses.map((one) => option(one, one, false)));
    });
    effect(() => {
        const known = parts(m.run.value?.info.words ?? m.problem.value?.words ?? "");
        m.about.value;
        isStory.value = Boolean(known.story);
        story.value = known.story ?? "";
        seed.value = known.seed ?? (seed.value || String(drawnSeed()));
        profile.value = known.profile ?? "";
        stress.value = known.stress ?? "";
        [nodes.value, seconds.value] = [known.nodes ?? "", known.seconds ?? ""];
    });
    // What is done within a second needs no way out.
    const isLong = signal(false);
    effect(() => {
        isLong.value = false;
        if (m.isOpening.value === null) return;
        const timer = setTimeout(() => (isLong.value = true), 1000);
        onEnd(() => clearTimeout(timer));
    });
    const open = () => {
        isStory.value = Boolean(story.value);
        const words = story.value ? joined([["story", story.value]]) : joined([["seed", seed.value.trim()],
            ["profile", profile.value], ["stress", stress.value], ["nodes", nodes.value], ["seconds", seconds.value]]);
        m.besideCount.value = 0;
        m.open(words, { isFresh: true });
    };
    return folded(m, h("form.sim-setup", {
        "aria-label": "What is run",
        onsubmit: (event) => {
            event.preventDefault();
            if (!isStory.peek()) story.value = "";
            open();
        },
    }, field("Story", story),
    h("span.contents", { hidden: () => isStory.value },
        h("span.sim-seed-box", null, field("Seed", seed),
            h("button", { type: "button", id: "draw", title: "Another seed", "aria-label": "Another seed",
                onclick: () => {
                    seed.value = String(drawnSeed());
                    open();
                } }, "⚄")),
        field("Profile", profile), field("Stress", stress), field("Trackers", nodes), field("Seconds", seconds)),
    h("button.primary", { type: "submit", id: "run", disabled: () => m.isOpening.value !== null }, "Run"),
    h("span.muted.sim-opening", { role: "status" }, () => m.isOpening.value ?? ""),
    h("button.quiet", { type: "button", id: "break-off", hidden: () => !isLong.value, onclick: () => m.stop() },
        "Stop")));
}

const isWide = matchMedia("(min-width: 761px)");

/** In a narrow window the form is folded away, so that the diagram is seen at once. */
function folded(m, form) {
    const box = h("details.sim-folded", { open: isWide.matches },
        h("summary", null, h("b", null, () => (m.run.value ? title(m, m.run.value) : "What is run")), " ",
            h("span.muted", null, "change")), form);
    listen(isWide, "change", () => (box.open = isWide.matches));
    return box;
}

/** What is run, in a few words. */
export function title(m, run) {
    const { story, seed, profile, stress } = { ...parts(run.info.words), profile: run.info.profile };
    if (story) return m.about.peek()?.stories.find((one) => one.name === story)?.title ?? story;
    return `Seed ${seed}, ${profile}${stress ? `, ${stress}` : ""}`;
}

// MARK: Stories

/** The run told in sentences: a story always is, any other run when somebody wants it. */
export function storyCard(m) {
    const story = computed(() => {
        const name = parts(m.run.value?.info.words ?? "").story;
        return name ? m.about.value?.stories.find((one) => one.name === name) ?? null : null;
    });
    const isTold = computed(() => Boolean(m.run.value && (story.value || m.isTold.value)));
    const told = computed(() => (isTold.value ? tale(m.run.value) : []));
    const at = computed(() => {
        const next = told.value.findIndex((one) => one.step > m.step.value);
        return (next < 0 ? told.value.length : next) - 1;
    });
    const go = (by) => {
        // Of several sentences of one step, the last is shown.
        const all = told.peek();
        const here = m.step.peek();
        const one = by > 0 ? all.find(({ step }) => step > here) : all.findLast(({ step }) => step < here);
        if (one) m.focus(one.step);
    };
    const isLast = () => !told.value.some(({ step }) => step > m.step.value);
    const isFirst = () => !told.value.some(({ step }) => step < m.step.value);
    const card = h("section.sim-story", { "aria-label": "The story", hidden: () => !isTold.value },
        h("div.sim-story-text", null,
            h("p.sim-story-title", null, () => story.value?.title ?? "What happens",
                h("span.muted", null, () => ` · ${Math.max(at.value + 1, 0)} of ${told.value.length}`),
                h("span.muted", null, () => (story.value ? ` · ${story.value.sentence}` : ""))),
            h("p.sim-sentence", { "aria-live": "polite" }, () => sentenceAt(m, told.value, at.value))),
        h("div.row.tight", null,
            h("button", { type: "button", id: "story-back", disabled: isFirst, onclick: () => go(-1) }, "Back"),
            h("button.primary", { type: "button", id: "story-next", disabled: isLast, onclick: () => go(1) },
                () => (at.value < 0 ? "Begin" : "Next"))));
    return { card, next: go };
}

/** The sentence of the step; what else is told of the same step before it. */
function sentenceAt(m, told, at) {
    if (at < 0) return "Nobody has started yet.";
    return told.filter(({ step }) => step === told[at].step).map((one) => one.sentence).join(" ");
}

// MARK: What came of it

/** The run in one line: whether all promises hold, and where they were broken. */
export function verdict(m) {
    return h("div.sim-verdict", { role: "status" }, () => {
        const run = m.run.value;
        if (!run) return null;
        const { violations, hash, summary } = run.info;
        const isGood = violations.length === 0;
        const first = violations[0];
        return h("div.row", null,
            h("span.dot", { "aria-hidden": "true", class: { good: isGood, bad: !isGood } }),
            h("b", null, isGood ? heldText(run) : brokenText(violations.length)),
            isGood ? null : h("button.sim-broken-link", { type: "button", onclick: () => m.goTo(first.step) },
                `${first.invariant} at ${secondsText(run.timeOf(first.step), 3)}`),
            h("span.muted.sim-summary", { title: summary },
                `${title(m, run)} · ${run.count.toLocaleString("en")} steps in ${secondsText(run.end, 1)} · `,
                h("code", null, hash)));
    });
}

const heldText = (run) => `All promises hold${run.info.waits ? " so far" : ""}.`;
const brokenText = (count) => (count === 1 ? "A promise is broken." : `${count} promises are broken.`);

/** Why promises that are looked at in the end were broken. */
export const reasons = (m) => h("ul.sim-reasons", { hidden: () => !m.run.value?.info.reasons?.length },
    () => (m.run.value?.info.reasons ?? []).map((one) => h("li", null, named(one, 1000))));
