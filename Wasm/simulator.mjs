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

  get memoryBytes() {
    return this.#exports.memory.buffer.byteLength;
  }

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
  #lines(byteCount) {
    if (byteCount === 0) return [];
    const bytes = new Uint8Array(this.#exports.memory.buffer, this.#exports.text_base() >>> 0, byteCount >>> 0);
    return new TextDecoder().decode(bytes).trimEnd().split("\n");
  }

  // A trap (a precondition of ours, or no memory left) leaves memory as it was in the middle of something.
  #guarded(body) {
    try {
      return body();
    } catch (error) {
      if (error instanceof WebAssembly.RuntimeError) this.#begin();
      throw error;
    }
  }
}
