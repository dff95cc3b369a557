// A run in the page's memory: steps, messages and roles, found by time or by number. Pure.
//
// Times are microseconds since the world began. Step 0 is before anything.

/** What messages are about, in the order in which they are drawn; the colour is of the style sheet. */
export const topics = [
    { name: "vote", title: "Votes", color: "hue-1" },
    { name: "election", title: "Elections", color: "hue-2" },
    { name: "join", title: "Joins", color: "hue-4" },
    { name: "request", title: "Requests", color: "hue-3" },
    { name: "life", title: "Signs of life", color: "edge" },
    { name: "client", title: "Clients", color: "hue-5" },
];

/** What became of messages, as the engine's worker counts it. */
export const fate = { arrived: 0, lost: 1, nobody: 2, again: 3, waits: 4 };

/** Who is no tracker. */
export const outside = 255;

/** What a step is about: bits of the engine. */
export const kinds = ["messages", "elections", "votes", "joins", "clients", "disk", "faults", "lives", "commands"];
export const kindBit = (name) => 1 << kinds.indexOf(name);

/** A message on its way for longer is looked for by itself. */
const longFlight = 500_000;
/** Steps that are shown as causes or effects of one, at most. */
const farthest = 1500;

/** The first place of a sorted list at which `isBeyond` holds; its length where it holds nowhere. */
export function firstPlace(length, isBeyond) {
    let [low, high] = [0, length];
    while (low < high) {
        const middle = (low + high) >> 1;
        if (isBeyond(middle)) high = middle;
        else low = middle + 1;
    }
    return low;
}

export class Run {
    #long = [];
    #bySentStep;
    #byArrivedStep;
    #effects = null;
    #before = null;
    #roles;
    #lower = null;

    constructor(data) {
        Object.assign(this, data);
        this.names = this.info.names;
        this.count = this.info.steps;
        this.end = Math.max(this.info.nanoseconds / 1000, this.times[this.count] ?? 0);
        this.violations = this.info.violations;
        const { sentAt, arrivedAt, id } = this.messages;
        this.messageCount = id.length;
        for (let at = 0; at < id.length; at += 1) {
            if (arrivedAt[at] - sentAt[at] > longFlight) this.#long.push(at);
        }
        this.#bySentStep = this.#indexed(this.messages.sentStep);
        const { arrivedStep, fate: fates } = this.messages;
        this.#byArrivedStep = this.#indexed(arrivedStep.map((step, at) => (fates[at] === fate.lost ? 0 : step)));
        this.#roles = this.names.map((_, place) => this.roles.filter((one) => one[2] === place));
        this.marksByLane = this.names.map((_, place) => this.marks.filter((one) => one[2] === place));
    }

    /** For each step, the messages of that step, as [first place of each step, places]. */
    #indexed(steps) {
        const first = new Int32Array(this.count + 2);
        for (const step of steps) if (step > 0 && step <= this.count) first[step + 1] += 1;
        for (let at = 1; at < first.length; at += 1) first[at] += first[at - 1];
        const places = new Int32Array(first[this.count + 1]);
        const next = first.slice();
        steps.forEach((step, place) => {
            if (step > 0 && step <= this.count) places[next[step]++] = place;
        });
        return { first, places };
    }

    #of({ first, places }, step) {
        return step > 0 && step <= this.count ? places.subarray(first[step], first[step + 1]) : places.subarray(0, 0);
    }

    /** The messages that were sent in a step. */
    sentIn = (step) => this.#of(this.#bySentStep, step);
    /** The messages that came in a step. */
    arrivedIn = (step) => this.#of(this.#byArrivedStep, step);

    /** The last step at a time or before it. */
    stepAt(time) {
        return Math.max(firstPlace(this.count + 1, (step) => step > 0 && this.times[step] > time) - 1, 0);
    }

    timeOf = (step) => (step > 0 ? this.times[Math.min(step, this.count)] : 0);

    /** The first step of several at a time or after it. */
    stepFrom = (time) => firstPlace(this.count + 1, (step) => step > 0 && this.times[step] >= time);

    /** How all trackers stood after a step: texts such as "M 1.2 17". */
    columnsAt(step) {
        const place = firstPlace(this.columns.length, (at) => this.columns[at][0] > step) - 1;
        return place < 0 ? this.names.map(() => "-") : this.columns[place][1];
    }

    /** The roles of a tracker, each from a time on: [step, time, place, condition]. */
    rolesOf = (place) => this.#roles[place];

    /** What a tracker was at a time. */
    conditionAt(place, time) {
        const all = this.#roles[place];
        const at = firstPlace(all.length, (one) => all[one][1] > time) - 1;
        return at < 0 ? "down" : all[at][3];
    }

    // MARK: Messages

    /** The messages that are under way within a span of time: calls `see` with the place of each. */
    eachMessage(from, to, see) {
        const { sentAt, arrivedAt } = this.messages;
        const until = firstPlace(sentAt.length, (at) => sentAt[at] > to);
        const first = firstPlace(sentAt.length, (at) => sentAt[at] >= from - longFlight);
        for (const at of this.#long) if (at < first && sentAt[at] <= to && arrivedAt[at] >= from) see(at);
        for (let at = first; at < until; at += 1) {
            if ((Number.isNaN(arrivedAt[at]) ? sentAt[at] + longFlight : arrivedAt[at]) >= from) see(at);
        }
    }

    /** The place of the message with an event's id; -1 where there is none. */
    messageWith = (id) => this.messages.id.indexOf(id);

    /** Who sent a message, or who gets it, in words. */
    partyOf(message, isSender) {
        const place = isSender ? this.messages.from[message] : this.messages.to[message];
        if (place !== outside) return `tracker ${this.names[place]}`;
        const client = this.messages.client[message];
        return client < this.info.clients + this.info.scrapers ? `client ${client}` : "a stranger";
    }

    messageName = (message) => this.messages.names[this.messages.name[message]];

    /** Whether a message is under way after a step. */
    isUnderWay(message, step) {
        const { sentStep, arrivedStep, fate: fates } = this.messages;
        if (sentStep[message] > step || this.messages.id[message] === 0) return false;
        return arrivedStep[message] === 0 ? fates[message] === fate.waits : arrivedStep[message] > step;
    }

    // MARK: Causes and effects

    /** For each step, the one before on the same tracker. */
    get before() {
        if (this.#before) return this.#before;
        const last = new Int32Array(32);
        this.#before = new Int32Array(this.count + 1);
        for (let step = 1; step <= this.count; step += 1) {
            for (let bits = this.trackers[step], place = 0; bits; bits >>>= 1, place += 1) {
                if (!(bits & 1)) continue;
                this.#before[step] = Math.max(this.#before[step], last[place]);
                last[place] = step;
            }
        }
        return this.#before;
    }

    get #effectLists() {
        if (this.#effects) return this.#effects;
        this.#effects = new Map();
        for (let step = 1; step <= this.count; step += 1) {
            const cause = this.causes[step];
            if (cause <= 0) continue;
            if (!this.#effects.has(cause)) this.#effects.set(cause, []);
            this.#effects.get(cause).push(step);
        }
        return this.#effects;
    }

    /** The steps that follow directly from one. */
    effectsOf = (step) => this.#effectLists.get(step) ?? [];

    /**
     * What led to a step and what came of it: { causes, effects }, sets of steps.
     *
     * `isWhole` takes in what the same tracker did before: then it is all that could have had a part in it, and all in
     * which it could have a part (Lamport's "happened before").
     */
    cone(step, isWhole = false) {
        const causes = new Set();
        const toDo = [step];
        while (toDo.length && causes.size < farthest) {
            const one = toDo.pop();
            for (const cause of isWhole ? [this.causes[one], this.before[one]] : [this.causes[one]]) {
                if (cause <= 0 || causes.has(cause)) continue;
                causes.add(cause);
                toDo.push(cause);
            }
        }
        const effects = new Set();
        if (!isWhole) {
            const next = [step];
            for (let at = 0; at < next.length && effects.size < farthest; at += 1) {
                for (const one of this.effectsOf(next[at])) if (!effects.has(one)) effects.add(one) && next.push(one);
            }
        } else {
            for (let one = step + 1; one <= this.count && effects.size < farthest; one += 1) {
                const isOf = (other) => other === step || effects.has(other);
                if (isOf(this.causes[one]) || isOf(this.before[one])) effects.add(one);
            }
        }
        return { causes, effects };
    }

    // MARK: Looking for something

    /** The steps whose words have a text in them. */
    withText(text) {
        const wanted = text.toLowerCase();
        this.#lower ??= this.lines.map((line) => line.toLowerCase());
        const found = [];
        this.#lower.forEach((line, step) => step > 0 && line.includes(wanted) && found.push(step));
        return found;
    }

    /** The next step, or the one before, at which something happens that is looked for; null where there is none. */
    next(what, step, by = 1) {
        const is = this.#test(what);
        for (let one = step + by; one > 0 && one <= this.count; one += by) if (is(one)) return one;
        return null;
    }

    #test(what) {
        if (what === "violation") {
            const steps = new Set(this.violations.map((one) => one.step));
            return (step) => steps.has(step);
        }
        if (what.startsWith("message ")) {
            const number = this.messages.names.indexOf(what.slice(8));
            return (step) => [this.sentIn(step), this.arrivedIn(step)]
                .some((some) => some.some((one) => this.messages.name[one] === number));
        }
        if (what in signs) {
            const steps = new Set(this.marks.filter((one) => signs[what].includes(one[3])).map((one) => one[0]));
            return (step) => steps.has(step);
        }
        const bit = kindBit(what);
        return (step) => (this.kinds[step] & bit) !== 0;
    }
}

/** The marks that are meant by what one may look for. */
const signs = {
    election: ["stands", "becameMaster"],
    commit: ["committed"],
    master: ["becameMaster"],
    death: ["died", "stopped"],
};

/** The first step at which two runs are no longer the same; null where they are the same to the end. */
export function parting(a, b) {
    const most = Math.min(a.count, b.count);
    for (let step = 1; step <= most; step += 1) {
        if (a.events[step] !== b.events[step] || a.times[step] !== b.times[step] || a.lines[step] !== b.lines[step]) {
            return step;
        }
    }
    return a.count === b.count ? null : most + 1;
}

/** 3.603396 s */
export const secondsText = (time, digits = 6) => `${(time / 1e6).toFixed(digits)} s`;
