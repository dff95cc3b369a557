// The simulator as a module of WebAssembly, for Node and browsers alike.

const noStress = 0xffff_ffff;

export class Simulator {
  // bytes: of simulator.wasm.
  static async load(bytes) {
    return new Simulator(await WebAssembly.compile(bytes));
  }

  constructor(module) {
    this.module = module;
    this.#begin();
    this.profiles = this.#lines(this.#exports.profiles());
    this.stresses = this.#lines(this.#exports.stresses());
  }

  #exports;

  // The module takes nothing from its host: no clock, no randomness, no output.
  #begin() {
    this.#exports = new WebAssembly.Instance(this.module, {}).exports;
  }

  get memoryBytes() {
    return this.#exports.memory.buffer.byteLength;
  }

  // MARK: Sweeps

  // Runs a scenario: its trace hash, the promises that it broke, and its transitions.
  run(profile, seed, stress = null) {
    return this.#guarded(() => {
      const hash = this.#exports.run(...this.#scenario(profile, seed, stress));
      return { hash: BigInt.asUintN(64, hash), ...this.#outcome() };
    });
  }

  // The same with its trace, a line a transition; the last line tells the hash.
  trace(profile, seed, stress = null) {
    return this.#guarded(() => {
      const trace = this.#lines(this.#exports.trace(...this.#scenario(profile, seed, stress)));
      return { trace, ...this.#outcome() };
    });
  }

  // MARK: Runs that are looked at

  // Opens the run that words name (`seed=17&profile=paxos&if=412.kill.2.8000`), in one of the slots 0 to 3.
  // Words that nobody understands are an Error with a sentence that says what is wrong.
  open(slot, words) {
    return this.#json("open", words, slot);
  }

  close(slot) {
    this.#guarded(() => this.#exports.close(slot));
  }

  // So many steps from one on, in columns.
  steps(slot, from, count) {
    return this.#json("steps", null, slot, from, count);
  }

  // Messages, datagrams, marks, periods and roles.
  picture(slot) {
    return this.#json("picture", null, slot);
  }

  // The state of each tracker after a step.
  state(slot, step) {
    return this.#json("state", null, slot, step);
  }

  // What is under way or waits after a step, soonest first.
  pending(slot, step) {
    return this.#json("pending", null, slot, step);
  }

  // A message or a datagram by the id of its event, with all that is in it.
  message(slot, id) {
    return this.#json("message", null, slot, id);
  }

  // MARK: Files

  // A space-time diagram as SVG: {from, until} in milliseconds, {keepalives}.
  svg(slot, { from = -1, until = -1, keepalives = false } = {}) {
    return this.#file("svg", slot, from, until, keepalives ? 1 : 0);
  }

  // The whole trace, below the command that makes it.
  text(slot) {
    return this.#file("text", slot);
  }

  // What clients and trackers sent, as pcapng.
  pcap(slot) {
    return this.#file("pcap", slot);
  }

  // MARK: Stories

  stories() {
    return this.#json("stories", null);
  }

  // The run in a slot as a guided story, one sentence a step.
  guide(slot) {
    return this.#json("guide", null, slot);
  }

  // MARK: Shrinking

  // Begins to make the run in a slot smaller; each `shrinkNext` tries some smaller ones.
  shrink(slot) {
    return this.#json("shrink", null, slot);
  }

  shrinkNext() {
    return this.#json("shrink_next", null);
  }

  // MARK: The explorer

  // Begins a walk: {nodes, elections, requests, restarts, network: "once" | "again" | "inOrder", …}.
  explore(bounds = {}) {
    const words = Object.entries(bounds).filter(([, value]) => value !== null && value !== undefined);
    return this.#json("explore", words.map(([key, value]) => `${key}=${value}`).join("&"));
  }

  exploreState() {
    return this.#json("explore_state", null);
  }

  exploreChoose(number) {
    return this.#json("explore_choose", null, number);
  }

  exploreBack() {
    return this.#json("explore_back", null);
  }

  exploreGoto(state) {
    return this.#json("explore_goto", null, state);
  }

  // MARK: The module's memory

  #scenario(profile, seed, stress) {
    const place = this.profiles.indexOf(profile);
    if (place < 0) throw new RangeError(`no profile ${profile}; there are ${this.profiles.join(", ")}`);
    if (stress === null) return [place, noStress, BigInt.asIntN(64, BigInt(seed))];
    const number = this.stresses.indexOf(stress);
    if (number < 0) throw new RangeError(`no stress ${stress}; there are ${this.stresses.join(", ")}`);
    return [place, number, BigInt.asIntN(64, BigInt(seed))];
  }

  #outcome() {
    return { violations: this.#lines(this.#exports.violations()), events: this.#exports.events() };
  }

  // Memory may have moved since the last call, and grows: it is looked at anew each time.
  #bytes(byteCount) {
    return new Uint8Array(this.#exports.memory.buffer, this.#exports.text_base() >>> 0, byteCount >>> 0);
  }

  #text(byteCount) {
    return new TextDecoder().decode(this.#bytes(byteCount));
  }

  #lines(byteCount) {
    return byteCount === 0 ? [] : this.#text(byteCount).trimEnd().split("\n");
  }

  // Makes a call, with a text behind its numbers where there is one.
  #call(name, text, numbers) {
    return this.#guarded(() => {
      if (text === null) return this.#exports[name](...numbers);
      const bytes = new TextEncoder().encode(text);
      const room = this.#exports.room(bytes.length) >>> 0;
      if (room === 0) throw new RangeError(`a text of ${bytes.length} bytes is too long`);
      new Uint8Array(this.#exports.memory.buffer, room, bytes.length).set(bytes);
      return this.#exports[name](...numbers, bytes.length);
    });
  }

  #json(name, text, ...numbers) {
    const answer = JSON.parse(this.#text(this.#call(name, text, numbers)));
    if (typeof answer.error === "string") throw new Error(answer.error);
    return answer;
  }

  // The bytes of a file, and whether it is none: an answer that begins like JSON says why.
  #file(name, ...numbers) {
    const bytes = this.#bytes(this.#call(name, null, numbers)).slice();
    if (bytes[0] === 0x7b) throw new Error(JSON.parse(new TextDecoder().decode(bytes)).error);
    return bytes;
  }

  // A trap (a precondition of ours, or no memory left) leaves memory as it was in the middle of something: all goes on
  // in a new instance, in which no run is open.
  #guarded(body) {
    try {
      return body();
    } catch (error) {
      if (!(error instanceof WebAssembly.RuntimeError)) throw error;
      this.#begin();
      throw new Error(
        `the simulator has stopped (${error.message}), which is a mistake in it or the end of its memory; `
          + "nothing is open any more",
        { cause: error });
    }
  }
}
