// Five hundred seeds in the module, on all processors, against the same natively (README.md).
//
//   TRACKER=.build/release/tracker node --test Wasm/test-sweep.mjs

import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { test } from "node:test";
import { isMainThread, parentPort, Worker, workerData } from "node:worker_threads";
import assert from "node:assert/strict";
import { sweepHash } from "./hashes.mjs";
import { Simulator } from "./simulator.mjs";

const seedCount = 500;
const threads = availableParallelism();

// A worker takes each so-many-th seed of each profile, as the page's do.
function sweep({ module, thread, seedsPerProfile }) {
  const simulator = new Simulator(module);
  return simulator.profiles.map((profile) => {
    const hashes = [];
    for (let seed = thread + 1; seed <= seedsPerProfile; seed += threads) {
      hashes.push(simulator.run(profile, seed).hash);
    }
    return hashes;
  });
}

function inWorker(data) {
  return new Promise((resolve, reject) => {
    const worker = new Worker(new URL(import.meta.url), { workerData: data });
    worker.once("message", resolve);
    worker.once("error", reject);
  });
}

if (isMainThread) {
  const tracker = process.env.TRACKER;
  const options = { skip: tracker ? false : "TRACKER names no tracker program to compare with" };
  test("a sweep of five hundred seeds has the same hash as natively", options, async (t) => {
    const bytes = readFileSync(new URL("../.build-wasm/simulator.wasm", import.meta.url));
    const { module, profiles } = await Simulator.load(bytes);
    const seedsPerProfile = seedCount / profiles.length;
    const began = performance.now();
    const shares = await Promise.all(
      Array.from({ length: threads }, (_, thread) => inWorker({ module, thread, seedsPerProfile })));
    const seconds = (performance.now() - began) / 1000;
    let nativeSeconds = 0;
    profiles.forEach((profile, place) => {
      const seeds = `1..${seedsPerProfile}`;
      const words = ["simulate", "--profile", profile, "--seeds", seeds, "--json"];
      const native = JSON.parse(execFileSync(tracker, words, { maxBuffer: 1 << 24 }));
      nativeSeconds += native.wall_seconds;
      const hashes = Array.from({ length: seedsPerProfile }, (_, index) =>
        shares[index % threads][place][Math.floor(index / threads)]);
      assert.equal(sweepHash(hashes), native.trace_hash, `${profile}, seeds ${seeds}`);
      assert.equal(native.scenarios, seedsPerProfile);
    });
    const pace = (time) => (seedCount / time).toFixed(0);
    t.diagnostic(`${threads} threads: ${pace(seconds)} scenarios a second in Node, ${pace(nativeSeconds)} natively`);
  });
} else {
  parentPort.postMessage(sweep(workerData));
}
