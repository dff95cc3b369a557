// A worker of a sweep: it runs seeds that it is given, and tells what came of each.

let simulator = null;

addEventListener("message", async ({ data }) => {
    try {
        if (!simulator) {
            const answer = await fetch(new URL("./simulator.wasm", import.meta.url));
            if (!answer.ok) throw new Error(`simulator.wasm is not there: ${answer.status}`);
            const { Simulator } = await import("./simulator.mjs");
            simulator = await Simulator.load(await answer.arrayBuffer());
        }
        const { profile, stress, first, count } = data;
        const hashes = new BigUint64Array(count);
        const failures = [];
        let events = 0;
        for (let at = 0; at < count; at += 1) {
            const seed = first + BigInt(at);
            try {
                const result = simulator.run(profile, seed, stress || null);
                hashes[at] = result.hash;
                events += result.events;
                if (result.violations.length) failures.push({ seed: String(seed), violations: result.violations });
            } catch (problem) {
                failures.push({ seed: String(seed), violations: [`the program stops: ${problem.message}`] });
            }
        }
        postMessage({ first, count, hashes, failures, events, memory: simulator.memoryBytes }, [hashes.buffer]);
    } catch (problem) {
        postMessage({ problem: problem.message });
    }
});
