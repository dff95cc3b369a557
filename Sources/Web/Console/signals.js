// Values that tell who reads them when they change: signals, what is computed from them, and effects that run again.
//
// Effects run together, once, in a microtask after the change, so that several changes are drawn once.
// A scope owns the effects that are made within it and ends them together: each page is a scope, and so is each run of
// an effect.

let reader = null;
let owner = null;
let waiting = null;

/** A value that is read by `value`, which an effect then depends on, or by `peek()`, which it does not. */
export function signal(value) {
    const readers = new Set();
    return {
        get value() {
            if (reader) {
                readers.add(reader);
                reader.sources.add(readers);
            }
            return value;
        },
        set value(next) {
            if (Object.is(value, next)) return;
            value = next;
            for (const one of [...readers]) plan(one);
        },
        peek: () => value,
    };
}

/** A value that follows from signals; it tells its readers only when it has become another one. */
export function computed(make) {
    const result = signal(undefined);
    effect(() => (result.value = make()), true);
    return result;
}

/** Runs now, and again whenever a signal that it read has changed. Returns what ends it. */
export function effect(run, isEarly = false) {
    const self = { run, isEarly, sources: new Set(), ends: [], isOver: false };
    const end = () => {
        self.isOver = true;
        forget(self);
    };
    owner?.push(end);
    execute(self);
    return end;
}

/** Runs `make` and owns what effects and clean-ups it sets up. Returns [its result, what ends them]. */
export function scope(make) {
    const before = owner;
    const ends = [];
    owner = ends;
    try {
        return [untracked(make), () => ends.splice(0).forEach((end) => end())];
    } finally {
        owner = before;
    }
}

/** Has `end` run when the scope ends. */
export function onEnd(end) {
    owner?.push(end);
}

/** Reads signals without depending on them. */
export function untracked(read) {
    const before = reader;
    reader = null;
    try {
        return read();
    } finally {
        reader = before;
    }
}

/** Ends what its last run has set up: it depends on nothing now, and owns nothing. */
function forget(self) {
    for (const readers of self.sources) readers.delete(self);
    self.sources.clear();
    self.ends.splice(0).forEach((end) => end());
}

function execute(self) {
    if (self.isOver) return;
    forget(self);
    const [beforeReader, beforeOwner] = [reader, owner];
    [reader, owner] = [self, self.ends];
    try {
        self.run();
    } finally {
        [reader, owner] = [beforeReader, beforeOwner];
    }
}

function plan(self) {
    if (self.isEarly) return execute(self);
    if (!waiting) {
        waiting = new Set();
        queueMicrotask(() => {
            const all = waiting;
            waiting = null;
            for (const one of all) {
                // One that fails is reported, and keeps no other from running.
                try {
                    execute(one);
                } catch (problem) {
                    reportError(problem);
                }
            }
        });
    }
    waiting.add(self);
}
