// Compares the simulator in WebAssembly with the native one (README.md).
//
//   TRACKER=.build/release/tracker node --test Wasm/test.mjs
//
// Without TRACKER: all rows of the golden hashes. With one, also sweeps on each stress, and traces word by word.

import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import assert from "node:assert/strict";
import { sweepHash } from "./hashes.mjs";
import { Simulator } from "./simulator.mjs";

const root = new URL("..", import.meta.url);
const tracker = process.env.TRACKER;
const bytes = readFileSync(new URL(".build-wasm/simulator.wasm", root));
const simulator = await Simulator.load(bytes);
const needsTracker = { skip: tracker ? false : "TRACKER names no tracker program to compare with" };

// What `tracker` prints; it ends with 1 where a promise is broken.
function native(...words) {
  return JSON.parse(execFileSync(tracker, [...words, "--json"], { maxBuffer: 1 << 30 }));
}

// The hash of a sweep.
function swept(profile, stress, first, last) {
  const hashes = [];
  for (let seed = first; seed <= last; seed++) hashes.push(simulator.run(profile, seed, stress).hash);
  return sweepHash(hashes);
}

test("the module takes nothing from its host", () => {
  assert.equal(WebAssembly.Module.imports(simulator.module).length, 0);
});

test("all golden hashes come out", (t) => {
  const file = new URL("Tests/SimulationTests/golden-hashes.txt", root);
  const rows = readFileSync(file, "utf8").trim().split("\n").map((line) => line.split(" "));
  assert.ok(rows.length >= 4 && new Set(rows.map(([profile]) => profile)).size === simulator.profiles.length);
  const differing = rows.filter(([profile, seed, hash]) => simulator.run(profile, seed).hash.toString(16) !== hash);
  assert.deepEqual(differing, []);
  t.diagnostic(`${rows.length} golden hashes are equal`);
});

test("a run is one and the same with its trace, after other runs, and in another instance", async () => {
  const other = await Simulator.load(bytes);
  const first = simulator.run("paxos", 7n, "lossy");
  const { trace, ...outcome } = simulator.trace("paxos", 7n, "lossy");
  assert.equal(trace.at(-1), `trace hash ${first.hash.toString(16)}`);
  assert.deepEqual(outcome, { violations: first.violations, events: first.events });
  assert.deepEqual(other.run("paxos", 7n, "lossy"), first);
  assert.notEqual(simulator.run("paxos", 8n, "lossy").hash, first.hash);
  assert.notEqual(simulator.run("paxos", 7n).hash, first.hash);
});

test("whatever a trace tells can be printed", () => {
  for (const profile of simulator.profiles) {
    for (const stress of [null, ...simulator.stresses]) {
      const unprinted = simulator.trace(profile, 5n, stress).trace.filter((line) => line.includes("cannot print"));
      assert.deepEqual(unprinted, []);
    }
  }
});

test("no other profile or stress is run", () => {
  assert.throws(() => simulator.run("paxo", 1n), /no profile paxo; there are classic/);
  assert.throws(() => simulator.run("paxos", 1n, "calm"), /no stress calm; there are/);
});

test("sweeps have the same hash as natively, on each stress", needsTracker, (t) => {
  let count = 0;
  for (const profile of simulator.profiles) {
    for (const stress of [null, ...simulator.stresses]) {
      const words = ["simulate", "--profile", profile, "--seeds", "1..6", ...(stress ? ["--stress", stress] : [])];
      const report = native(...words);
      assert.equal(swept(profile, stress, 1n, 6n), report.trace_hash, words.join(" "));
      count += report.scenarios;
    }
  }
  t.diagnostic(`${count} scenarios have the same hash as natively`);
});

test("traces are word by word the same as natively", needsTracker, () => {
  for (const profile of simulator.profiles) {
    for (const [seed, stress] of [[2n, null], [3n, "damaged"], [4n, "duplicates"], [18_446_744_073_709_551_615n, "disks"]]) {
      const words = ["replay", String(seed), "--profile", profile, ...(stress ? ["--stress", stress] : [])];
      assert.deepEqual(simulator.trace(profile, seed, stress).trace, native(...words).trace, words.join(" "));
    }
  }
});

test("it is fast enough to sweep in a page", (t) => {
  const count = 60;
  const began = performance.now();
  for (let seed = 1; seed <= count; seed++) simulator.run(simulator.profiles[seed % simulator.profiles.length], seed);
  const seconds = (performance.now() - began) / 1000;
  t.diagnostic(
    `${(count / seconds).toFixed(0)} scenarios a second on one thread, `
      + `${(simulator.memoryBytes / 2 ** 20).toFixed(0)} MiB of memory`);
});
