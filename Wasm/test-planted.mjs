// The module with mistakes to plant, and that the product's has none (Tests/PlantedBugs).
//
//   Wasm/build planted && node --test Wasm/test-planted.mjs

import { readFileSync } from "node:fs";
import { test } from "node:test";
import assert from "node:assert/strict";
import { Simulator } from "./simulator.mjs";

const root = new URL("..", import.meta.url);
const read = (path) => readFileSync(new URL(path, root));
const product = read(".build-wasm/simulator.wasm");
const planted = read(".build-wasm/planted/simulator.wasm");
const source = read("Sources/TrackerLogic/PlantedBug.swift").toString();
const names = [...source.matchAll(/^ {4}case (\w+)$/gm)].map((match) => match[1]);

const { profiles } = await Simulator.load(product);

// The other module, with the exports that only it has.
class Planted {
  static async load() {
    return new Planted((await WebAssembly.instantiate(planted, {})).instance.exports);
  }

  constructor(exports) {
    this.exports = exports;
  }

  lines(length) {
    const bytes = new Uint8Array(this.exports.memory.buffer, this.exports.text_base(), length);
    return length === 0 ? [] : new TextDecoder().decode(bytes).trimEnd().split("\n");
  }

  get mistakes() {
    return this.lines(this.exports.mistakes());
  }

  // null: none.
  plant(name) {
    return this.exports.plant(name === null ? this.mistakes.length : this.mistakes.indexOf(name));
  }

  run(profile, seed) {
    const hash = BigInt.asUintN(64, this.exports.run(profiles.indexOf(profile), 0xffff_ffff, seed));
    return { hash, violations: this.lines(this.exports.violations()), events: this.exports.events() };
  }
}

test("the product's module has no mistake to plant", async () => {
  const { module } = await Simulator.load(product);
  const exported = WebAssembly.Module.exports(module).map((one) => one.name);
  assert.ok(exported.includes("run"));
  assert.ok(!exported.includes("plant") && !exported.includes("mistakes"));
  assert.ok(names.length > 50 && names.includes("promiseForgotten"));
  const text = product.toString("latin1");
  assert.deepEqual(names.filter((name) => text.includes(name)), []);
  assert.ok(planted.toString("latin1").includes("promiseForgotten"));
});

test("the other one has all of them, and the first already planted", async () => {
  const simulator = await Planted.load();
  assert.deepEqual(simulator.mistakes, names);
  assert.match(simulator.run("paxos", 1n).violations[0], /promiseIsKept/);
  assert.equal(simulator.plant("epochShared"), 1);
  assert.match(simulator.run("paxos", 10n).violations[0], /oneMasterPerEpoch/);
});

test("without a mistake it is the product's simulator", async () => {
  const [simulator, sound] = [await Planted.load(), await Simulator.load(product)];
  assert.equal(simulator.plant(null), 0);
  for (const profile of profiles) {
    for (const seed of [1n, 10n]) assert.deepEqual(simulator.run(profile, seed), sound.run(profile, seed));
  }
  assert.deepEqual(sound.run("paxos", 1n).violations, []);
});
