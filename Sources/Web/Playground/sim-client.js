// The page's side of the engine: it asks the worker, and gets promises.

/** A worker with an engine in it. */
export class Engine {
    #worker;
    #waiting = new Map();
    #number = 0;

    constructor() {
        this.#begin();
    }

    #begin() {
        this.#worker = new Worker(new URL("./sim-engine.js", import.meta.url), { type: "module", name: "simulator" });
        this.#worker.addEventListener("message", ({ data }) => {
            const one = this.#waiting.get(data.number);
            if (!one) return;
            if (data.done !== undefined) return one.tell?.(data.done, data.all);
            this.#waiting.delete(data.number);
            if (data.problem !== undefined) one.fail(new Error(data.problem));
            else one.give(data.result);
        });
        this.#worker.addEventListener("error", (event) => {
            const problem = new Error(`The simulator's worker does not run here: ${event.message ?? "it was refused"}. `
                + "It needs a browser with modules in workers and WebAssembly.");
            this.#fail(problem);
        });
    }

    #fail(problem) {
        for (const one of this.#waiting.values()) one.fail(problem);
        this.#waiting.clear();
    }

    /** Breaks off whatever it does, and begins anew. */
    restart() {
        this.#worker.terminate();
        this.#fail(new Error("It was stopped"));
        this.#begin();
        return this.ask("load");
    }

    /** Asks the worker: `ask("state", words, step)`. */
    ask(name, ...words) {
        return this.#ask(name, words, null);
    }

    /** Opens a run and reads all of it; `tell(done, all)` hears how far that is. */
    read(words, tell) {
        return this.#ask("read", [words], tell);
    }

    #ask(name, words, tell) {
        return new Promise((give, fail) => {
            const number = (this.#number += 1);
            this.#waiting.set(number, { give, fail, tell });
            this.#worker.postMessage({ number, name, words });
        });
    }

    end() {
        this.#worker.terminate();
    }
}

/**
 * Asks for what changes with each frame: at most one question is under way, and of those that come meanwhile only the
 * last is asked. `got(answer, question)` is called with each answer that is still wanted.
 */
export function lastOf(ask, got) {
    let isAsking = false;
    let next = null;
    const go = async (question) => {
        isAsking = true;
        try {
            const answer = await ask(...question);
            if (!next) got(answer, question);
        } catch (problem) {
            if (!next) got(null, question, problem);
        }
        isAsking = false;
        if (!next) return;
        const then = next;
        next = null;
        requestAnimationFrame(() => go(then));
    };
    return (...question) => {
        if (isAsking) next = question;
        else go(question);
    };
}
