// What the page knows: the run that is shown, the one beside it, the step, and how it is looked at. All of it is in the
// address, too, so that a link opens the same picture.

import { route } from "./route.js";
import { computed, effect, onEnd, signal } from "./signals.js";
import { Engine } from "./sim-client.js";
import { firstPlace, parting, Run, topics } from "./sim-run.js";
import { branched, joined, whatIfs, withWhatIfs, wordsOf } from "./sim-words.js";

/** Microseconds that a picture shows before there is a run; and what it may show at first, around a step. */
const firstSpan = 1_500_000;
const spans = [1_500_000, 800_000, 400_000, 200_000, 100_000, 50_000, 25_000];
/** So many messages at first: some more than have names. */
const fittingMessages = 60;
/** Microseconds that a picture shows at least, and at most. */
const [shortestSpan, longestSpan] = [20, 4_000_000_000];
/** What is not drawn until somebody wants it. */
const hiddenAtFirst = "life,client";
/** Runs that are kept whole. */
const keptRuns = 6;
/** The address follows so long after the last change. */
const addressDelay = 250;
/** A link that says nothing opens this. */
export const firstWords = "story=master-dies";

/** The page's state, until its scope ends. */
export function model() {
    const engine = new Engine();
    onEnd(() => engine.end());
    const m = {
        engine,
        /** { phase: "loading", "missing", "failed" or "ready", … } */
        status: signal({ phase: "loading", text: "Loading the simulator …" }),
        about: signal(null),
        run: signal(null),
        beside: signal(null),
        besideCount: signal(0),
        /** What went wrong with the last run that was asked for; and what a link's `v` says. */
        problem: signal(null),
        otherHash: signal(null),
        isOpening: signal(null),
        step: signal(0),
        view: signal({ from: 0, to: firstSpan }),
        chosen: signal(null),
        hidden: signal(new Set(hiddenAtFirst.split(","))),
        hiddenLanes: signal(new Set()),
        isWhole: signal(false),
        search: signal(""),
        isList: signal(false),
        /** Whether a run that is no story is told in sentences, too. */
        isTold: signal(false),
        /** What is shown: run, sweep or walk. */
        mode: computed(() => ({ sweep: "sweep", walk: "walk", explore: "walk" })[route.value.path[0]] ?? "run"),
        /** Branches of this visit, as words; the first is what was opened. */
        branches: signal([]),
    };
    m.names = () => m.run.value?.names ?? [];
    m.parting = computed(() => (m.run.value && m.beside.value ? parting(m.beside.value, m.run.value) : null));
    m.found = computed(() => (m.run.value && m.search.value ? m.run.value.withText(m.search.value) : []));
    Object.assign(m, acts(m), opening(m));
    followAddress(m);
    return m;
}

// MARK: Moving about

function acts(m) {
    const clamped = (step) => Math.min(Math.max(Math.round(step), 0), m.run.peek()?.count ?? 0);
    const self = {
        /** Goes to a step; the picture follows where it is not seen. */
        goTo(step, isScrub = false) {
            m.step.value = clamped(step);
            self.show(m.run.peek()?.timeOf(m.step.peek()) ?? 0, isScrub);
        },
        /** Moves the picture so that a time is seen. */
        show(time, isCentred = false) {
            const { from, to } = m.view.peek();
            const span = to - from;
            const share = (time - from) / span;
            // Where all is seen, nothing moves.
            if (from <= 0 && to >= (m.run.peek()?.end ?? 0)) return;
            if (!isCentred && share >= 0.04 && share <= 0.9) return;
            if (isCentred && share >= 0.3 && share <= 0.7) return;
            self.look(time - span * (isCentred ? 0.5 : share > 0.9 ? 0.25 : 0.4), span);
        },
        /** Goes to a step, and shows as much around it as can be told apart. */
        focus(step) {
            const run = m.run.peek();
            if (!run) return;
            m.step.value = clamped(step);
            const span = fitting(run, m.hidden.peek(), run.timeOf(m.step.peek()));
            self.look(run.timeOf(m.step.peek()) - span * 0.4, span);
        },
        /** Shows a span of time. */
        look(from, span) {
            const end = m.run.peek()?.end ?? firstSpan;
            const wide = Math.min(Math.max(span, shortestSpan), Math.min(end * 1.04, longestSpan));
            const least = -wide * 0.04;
            const start = Math.min(Math.max(from, least), Math.max(end * 1.02 - wide, least));
            // In whole microseconds, as a link has them.
            m.view.value = { from: Math.round(start), to: Math.round(start + wide) };
        },
        zoom(factor, time = null) {
            const { from, to } = m.view.peek();
            const fixed = time ?? Math.min(Math.max(m.run.peek()?.timeOf(m.step.peek()) ?? 0, from), to);
            const share = (fixed - from) / (to - from);
            const span = Math.min(Math.max((to - from) * factor, shortestSpan), longestSpan);
            self.look(fixed - span * share, span);
        },
        pan(share) {
            const { from, to } = m.view.peek();
            self.look(from + (to - from) * share, to - from);
        },
        whole: () => m.run.peek() && self.look(0, m.run.peek().end * 1.02),
        /** The next step of what is looked for, or the one before. Returns whether there is one. */
        jump(what, by = 1) {
            const step = m.run.peek()?.next(what, m.step.peek(), by);
            if (step) self.goTo(step);
            return Boolean(step);
        },
        nextFound(by) {
            const all = m.found.peek();
            if (!all.length) return;
            const at = firstPlace(all.length, (one) => all[one] > m.step.peek());
            const before = all[at - 1] === m.step.peek() ? at - 2 : at - 1;
            self.goTo(by > 0 ? all[at] ?? all[0] : all[before] ?? all.at(-1));
        },
        choose: (message) => (m.chosen.value = message),
        turnHidden(set, name) {
            const next = new Set(set.peek());
            if (!next.delete(name)) next.add(name);
            set.value = next;
        },
    };
    return self;
}

/** The longest of some spans around a time in which messages can be told apart: few in all, and few near the time. */
function fitting(run, hidden, time) {
    const isHidden = topics.map((one) => hidden.has(one.name));
    return spans.find((span) => {
        const count = (from, to) => {
            let all = 0;
            run.eachMessage(from, to, (one) => (all += isHidden[run.messages.topic[one]] ? 0 : 1));
            return all;
        };
        return count(time - span * 0.4, time + span * 0.6) <= fittingMessages
            && count(time - span * 0.04, time + span * 0.04) <= fittingMessages / 5;
    }) ?? spans.at(-1);
}

// MARK: Opening runs

function opening(m) {
    const kept = new Map();
    let wanted = 0;

    async function read(words) {
        if (kept.has(words)) {
            const run = kept.get(words);
            kept.delete(words);
            kept.set(words, run);
            return run;
        }
        const run = new Run(await m.engine.read(words,
            (done, all) => (m.isOpening.value = `Reading step ${done} of ${all} …`)));
        kept.set(run.info.words, run);
        if (run.info.words !== words) kept.set(words, run);
        while (kept.size > keptRuns * 2) kept.delete(kept.keys().next().value);
        return run;
    }

    /** The run that stands beside one: the same with only the first what-ifs; null where nothing is beside it. */
    async function readBeside(run) {
        const all = whatIfs(run.info.words);
        const count = m.besideCount.peek();
        if (count === null || count >= all.length) return null;
        return read(withWhatIfs(run.info.words, all.slice(0, count)));
    }

    /**
     * Opens a run by its words.
     *
     * `looks` says where to look: { step, time, from, to, isFresh }; a branch is looked at where its origin was.
     */
    async function open(words, looks = {}) {
        const number = (wanted += 1);
        m.isOpening.value = "Running …";
        m.problem.value = null;
        try {
            const run = await read(words);
            const beside = await readBeside(run);
            if (number !== wanted) return null;
            m.run.value = run;
            m.beside.value = beside;
            m.otherHash.value = looks.v && looks.v !== run.info.hash ? looks.v : null;
            if (looks.isFresh) m.branches.value = [];
            if (!m.branches.peek().includes(run.info.words)) m.branches.value = [...m.branches.peek(), run.info.words];
            place(run, looks);
            return run;
        } catch (problem) {
            if (number !== wanted) return null;
            m.problem.value = { words, text: problem.message };
            return null;
        } finally {
            if (number === wanted) m.isOpening.value = null;
        }
    }

    function place(run, looks) {
        const first = run.violations[0];
        let step = looks.step;
        if (step === undefined && looks.time !== undefined) step = run.stepAt(looks.time);
        if (step === undefined) step = looks.isKept ? m.step.peek() : first?.step ?? beginning(run);
        m.step.value = Math.min(Math.max(step, 0), run.count);
        m.chosen.value = looks.message !== undefined ? known(run, looks.message) : null;
        if (looks.from !== undefined && looks.to > looks.from) {
            m.view.value = { from: looks.from, to: looks.to };
        } else if (looks.isKept) {
            m.show(run.timeOf(m.step.peek()));
        } else {
            m.focus(m.step.peek());
        }
    }

    const known = (run, name) => {
        const at = name < 0 ? -name - 1 : run.messageWith(name);
        return at < 0 || at >= run.messageCount ? null : at;
    };

    return {
        open,
        /** Does something else at the current step, and shows what becomes of it. */
        async whatIf(actions, step = m.step.peek()) {
            const run = m.run.peek();
            if (!run || m.isOpening.peek()) return null;
            const message = m.chosen.peek() === null ? undefined : nameOf(run, m.chosen.peek());
            const isNext = /^(take|time|net)/.test([actions].flat()[0]);
            return open(branched(run.info.words, step, actions), { isKept: true, message,
                step: isNext ? Infinity : step });
        },
        /** Breaks off what is being run. */
        stop() {
            wanted += 1;
            m.isOpening.value = null;
            m.engine.restart();
        },
        /** Takes the last what-if back. */
        async undo() {
            const run = m.run.peek();
            const all = run ? whatIfs(run.info.words) : [];
            if (!all.length) return;
            await open(withWhatIfs(run.info.words, all.slice(0, -1)), { isKept: true });
        },
        async showBeside(count) {
            m.besideCount.value = count;
            if (m.run.peek()) m.beside.value = await readBeside(m.run.peek());
        },
        /** Forgets a branch. */
        forget(words) {
            m.branches.value = m.branches.peek().filter((one) => one !== words);
        },
    };
}

/** How a link names a message: by its event, or by its place where it was lost at once and has none. */
const nameOf = (run, message) => run.messages.id[message] || -message - 1;

/** Where something begins to happen: a little before the first election is over. */
const beginning = (run) => run.next("master", 0) ?? Math.min(1, run.count);

// MARK: The address

function followAddress(m) {
    let written = null;
    let timer = null;

    /** The part after # of a link to what is seen. */
    m.address = () => {
        const run = m.run.peek();
        const looks = Object.entries(looksNow(m));
        return run ? `#sim?${[run.info.words, joined(looks)].filter(Boolean).join("&")}` : "#sim";
    };
    m.link = () => `${location.href.split("#")[0]}${m.address()}`;

    effect(() => {
        // Whatever is in the address is read, so that it is written when it changes.
        for (const one of [m.run, m.step, m.view, m.chosen, m.hidden, m.hiddenLanes, m.search, m.isList, m.isTold,
            m.mode, m.besideCount]) one.value;
        clearTimeout(timer);
        if (m.status.value.phase !== "ready" || m.problem.value || m.mode.value !== "run") return;
        timer = setTimeout(() => {
            const next = m.address();
            if (!m.run.peek() || next === location.hash) return;
            written = next;
            history.replaceState(null, "", next);
        }, addressDelay);
    });
    onEnd(() => clearTimeout(timer));

    let read = null;
    effect(() => {
        const { query } = route.value;
        if (m.status.value.phase !== "ready" || m.mode.value !== "run") return;
        if (location.hash === written || location.hash === read) return;
        read = location.hash;
        if (m.run.peek() && read === m.address()) return;
        takeLooks(m, query);
        m.open(wordsOf(query) || firstWords, looksAsked(query));
    });

    /** Loads the engine. */
    m.begin = async () => {
        try {
            const answer = await m.engine.ask("load");
            if (answer.missing) return (m.status.value = { phase: "missing", code: answer.missing });
            m.about.value = answer;
            m.status.value = { phase: "ready" };
        } catch (problem) {
            m.status.value = { phase: "failed", text: problem.message };
        }
    };
}

/** How it is looked at now, as a link says it. */
function looksNow(m) {
    const run = m.run.peek();
    const { from, to } = m.view.peek();
    const chosen = m.chosen.peek();
    const hidden = [...m.hidden.peek()].sort().join(",") || "none";
    const all = whatIfs(run?.info.words ?? "");
    const round = (time) => Math.round(time) / 1e6;
    return {
        step: m.step.peek(), v: run?.info.hash, from: round(from), until: round(to),
        message: chosen === null || !run ? null : nameOf(run, chosen),
        hide: hidden === hiddenAtFirst.split(",").sort().join(",") ? null : hidden,
        lanes: [...m.hiddenLanes.peek()].sort().join(","), search: m.search.peek(),
        view: m.isList.peek() ? "list" : null, tale: m.isTold.peek() ? "yes" : null,
        beside: !all.length || m.besideCount.peek() === 0 ? null : m.besideCount.peek() ?? "none",
    };
}

function takeLooks(m, query) {
    m.hidden.value = new Set((query.hide ?? hiddenAtFirst).split(",").filter((one) => one && one !== "none"));
    m.hiddenLanes.value = new Set((query.lanes ?? "").split(",").filter(Boolean).map(Number));
    m.search.value = query.search ?? "";
    m.isList.value = query.view === "list";
    m.isTold.value = query.tale === "yes";
    m.besideCount.value = query.beside === "none" ? null : Number(query.beside) || 0;
}

/** Where a link says to look. */
function looksAsked(query) {
    const number = (name, by = 1) => (query[name] === undefined || Number.isNaN(Number(query[name])) ? undefined
        : Number(query[name]) * by);
    return {
        step: number("step"), time: number("at", 1e6), from: number("from", 1e6), to: number("until", 1e6),
        message: number("message"), v: query.v, isFresh: true,
    };
}
