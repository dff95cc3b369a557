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
    const last = 18_446_744_073_709_551_615n;
    for (const [seed, stress] of [[2n, null], [3n, "damaged"], [4n, "duplicates"], [last, "disks"]]) {
      const words = ["replay", String(seed), "--profile", profile, ...(stress ? ["--stress", stress] : [])];
      assert.deepEqual(simulator.trace(profile, seed, stress).trace, native(...words).trace, words.join(" "));
    }
  }
});

// MARK: Runs that are looked at

// The same natively, from the words of a run.
function replay(words) {
  try {
    return native("replay", "--words", words);
  } catch (error) {
    // A broken promise ends it with 1.
    return JSON.parse(error.stdout);
  }
}

// What-ifs for a run that is open: of each kind some, by what is under way at some steps.
function someWhatIfs(slot, words, { steps, names }) {
  let list = [];
  let step = Math.floor(steps / 5);
  const kinds = ["drop", "kill", "delay", "cut", "pause", "net", "fence", "hand", "disk", "wake"];
  for (const [number, kind] of kinds.entries()) {
    const place = number % names.length;
    const waiting = simulator.pending(slot, step);
    const flights = waiting.filter(({ kind }) => kind === "message" || kind === "datagram");
    const id = flights[number % Math.max(flights.length, 1)]?.id ?? 1;
    const numbers = {
      drop: [id], delay: [id, 900], kill: [place, 1200], cut: [place, 1500], pause: [place, 700], fence: [place, 900],
      hand: [place, 1], disk: [place, 800], wake: [place], net: [],
    }[kind];
    list.push([step, kind, ...numbers].join("."));
    if (kind === "net") {
      for (let count = 0; count < 6; count++) {
        const { steps: last } = simulator.open(slot, `${words}&if=${list.join(",")}`);
        const waiting = simulator.pending(slot, last).find(({ kind }) => kind === "message");
        list.push(waiting && count % 2 === 0 ? `${last}.take.${waiting.id}` : `${last}.time`);
        step = last + 1;
      }
      list.push(`${step}.auto`);
    }
    simulator.open(slot, `${words}&if=${list.join(",")}`);
    step += 1 + Math.floor(steps / 20);
  }
  return `${words}&if=${list.join(",")}`;
}

test("a run that is opened has the hash of the same run, and a branch has its own each time", () => {
  for (const [number, profile] of simulator.profiles.entries()) {
    const seed = 40 + number;
    const words = `seed=${seed}&profile=${profile}`;
    const opened = simulator.open(0, words);
    assert.equal(BigInt(`0x${opened.hash}`), simulator.run(profile, BigInt(seed)).hash);
    const branched = someWhatIfs(1, words, (simulator.open(1, words), opened));
    const { hash, steps, waits } = simulator.open(1, branched);
    assert.notEqual(hash, opened.hash);
    assert.equal(waits, false);
    for (const slot of [0, 1, 2, 3]) simulator.close(slot);
    assert.deepEqual([hash, steps], ["hash", "steps"].map((key) => simulator.open(2, branched)[key]));
    simulator.close(2);
  }
});

test("what-if runs have the same hashes, steps and outcomes as natively", needsTracker, (t) => {
  let count = 0;
  for (const profile of simulator.profiles) {
    for (const [seed, stress] of [[3, ""], [4, "&stress=lossy"], [5, "&stress=duplicates"]]) {
      const words = `seed=${seed}&profile=${profile}${stress}`;
      const branched = someWhatIfs(0, words, simulator.open(0, words));
      const opened = simulator.open(0, branched);
      const report = replay(branched);
      assert.equal(opened.hash, report.trace_hash, branched);
      assert.equal(opened.steps, report.steps, branched);
      assert.equal(opened.waits, report.waits);
      assert.deepEqual(
        opened.whatIfs.map(({ words, unmet }) => [words, unmet]),
        report.what_ifs.map(({ what_if, unmet }) => [what_if, unmet ?? null]));
      assert.deepEqual(...[opened, report].map(({ violations }) => violations.map(({ invariant }) => invariant)));
      const lines = simulator.steps(0, 0, opened.steps + 1).lines.flat().filter((line) => line !== "");
      assert.deepEqual(lines, report.trace.slice(0, -1).map((line) => line.split(" │ ").at(-1)));
      count += opened.whatIfs.length;
    }
  }
  t.diagnostic(`${count} what-ifs are the same natively`);
});

test("the command that is shown runs the same natively", needsTracker, () => {
  const runs = ["seed=6&profile=lowest&nodes=5&if=900.kill.1.700,1200.net", "story=handover&if=400.pause.0.900"];
  for (const words of runs) {
    const { command, hash } = simulator.open(0, words);
    const program = command.replace(/^tracker/, '"$TRACKER"');
    const output = execFileSync("/bin/sh", ["-c", `${program} --json --quiet`], { env: { TRACKER: tracker } });
    assert.equal(JSON.parse(output).trace_hash, hash);
  }
});

test("steps, pictures, messages and files fit together", () => {
  const { steps, names, hash } = simulator.open(0, "story=master-dies");
  const all = simulator.steps(0, 0, 1e6);
  const columns = ["time", "event", "cause", "trackers", "kinds", "lines", "columns"];
  for (const column of columns) assert.equal(all[column].length, steps + 1);
  assert.ok(all.cause.every((cause, step) => cause < step || step === 0));
  assert.deepEqual(simulator.steps(0, 500, 3).lines, all.lines.slice(500, 503));
  assert.equal(simulator.steps(0, steps + 9, 3).time.length, 0);
  const { messages, datagrams, marks, roles } = simulator.picture(0);
  assert.ok(messages.length > 500 && datagrams.length > 50 && marks.length > 20 && roles.length > 5);
  for (const [name, topic, from, to, sent, sentAt, end, endedAt, id, fate] of messages) {
    assert.ok(from < names.length && to < names.length && topic.length > 3);
    assert.equal(all.time[sent], sentAt);
    if (fate === "arrived") assert.deepEqual([all.time[end], all.event[end], all.cause[end]], [endedAt, id, sent]);
    if (fate === "arrived" && name === "PREPARE") assert.match(simulator.message(0, id).text, /^PREPARE \[/);
  }
  assert.equal(new TextDecoder().decode(simulator.svg(0)).slice(0, 4), "<svg");
  const text = new TextDecoder().decode(simulator.text(0)).trimEnd().split("\n");
  assert.match(text[0], /^tracker replay --words 'story=master-dies'$/);
  assert.equal(text.at(-1), `trace hash ${BigInt(`0x${hash}`).toString(16)}`);
  assert.deepEqual([...simulator.pcap(0).slice(0, 4)], [10, 13, 13, 10]);
  const stories = simulator.stories();
  assert.equal(stories.length, 18);
  assert.ok(simulator.guide(0).every(({ sentence }) => /^[A-Z].*\.$/.test(sentence)));
});

test("each story is opened, and goes as it was written down", () => {
  for (const { name } of simulator.stories()) {
    const { hash } = simulator.open(0, `story=${name}`);
    const told = readFileSync(new URL(`Tests/SimulationTests/Transcripts/${name}.txt`, root), "utf8");
    assert.ok(told.endsWith(`trace hash ${BigInt(`0x${hash}`).toString(16)}\n`), name);
  }
});

test("what nobody understands is refused with a sentence, and nothing is lost by it", () => {
  simulator.open(0, "seed=1&profile=alone");
  const refused = [
    [() => simulator.open(1, "seed=1&profile=paxo"), /there is no profile "paxo"/],
    [() => simulator.open(1, "seed=1&if=5.melt"), /which nobody can do/],
    [() => simulator.open(1, "x".repeat(20_000)), /16384 is the most/],
    [() => simulator.open(1, "x".repeat(2_000_000)), /too long/],
    [() => simulator.open(4, "seed=1"), /no slot 4/], [() => simulator.steps(3, 0, 1), /no run is open in slot 3/],
    [() => simulator.message(0, 4_000_000_000), /no message/], [() => simulator.svg(2), /no run is open/],
    [() => simulator.shrink(0), /breaks no promise/], [() => simulator.exploreChoose(0), /no walk was begun/],
    [() => simulator.explore({ nodes: 9 }), /from 1 to 5/],
  ];
  for (const [act, sentence] of refused) assert.throws(act, sentence);
  assert.ok(simulator.state(0, 4_294_967_295).length === 1 && simulator.pending(0, 0).length > 0);
});

test("a walk goes on, back, and to where it was", () => {
  const first = simulator.explore({ nodes: 3, elections: 1, requests: 1, network: "once" });
  assert.equal(first.choices.length, 6);
  const second = simulator.exploreChoose(1);
  assert.deepEqual([second.state, second.depth, second.edges], [1, 1, [[0, 1]]]);
  assert.deepEqual(simulator.exploreBack().choices.map(({ state }) => state), [null, 1, null, null, null, null]);
  assert.deepEqual(simulator.exploreGoto(1), second);
});

test("60 s of seven trackers open, and are gone to and fro, fast enough", (t) => {
  const words = "seed=17&profile=paxos&nodes=7&seconds=60";
  for (const slot of [0, 1, 2, 3]) simulator.close(slot);
  simulator.open(0, words);
  const cpu = (act) => {
    const before = process.cpuUsage();
    act();
    const { user, system } = process.cpuUsage(before);
    return (user + system) / 1000;
  };
  simulator.close(0);
  const opening = cpu(() => simulator.open(0, words));
  const middle = 9_000;
  simulator.state(0, middle);
  const stepping = cpu(() => {
    for (let count = 1; count <= 100; count++) simulator.state(0, middle - count);
  }) / 100;
  const branching = cpu(() => simulator.open(1, `${words}&if=17000.kill.2.3000`));
  t.diagnostic(
    `opening ${opening.toFixed(0)} ms of computing, a step back ${stepping.toFixed(1)} ms, a branch near the end `
      + `${branching.toFixed(0)} ms, ${(simulator.memoryBytes / 2 ** 20).toFixed(0)} MiB of memory`);
  assert.ok(opening < 2000 && stepping < 33);
});

test("a thousand runs leave memory bounded", async (t) => {
  const other = await Simulator.load(bytes);
  const sizes = [];
  for (let seed = 1; seed <= 1000; seed++) {
    const profile = other.profiles[seed % other.profiles.length];
    other.run(profile, BigInt(seed));
    if (seed % 10 === 0) other.open(seed / 10 % 4, `seed=${seed}&profile=${profile}`);
    if (seed % 250 === 0) sizes.push(Math.round(other.memoryBytes / 2 ** 20));
  }
  t.diagnostic(`${sizes.join(", ")} MiB after each 250 runs`);
  assert.ok(sizes.at(-1) <= 256 && sizes.at(-1) - sizes[1] <= 64);
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
