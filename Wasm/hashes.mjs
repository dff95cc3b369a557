// The hash of a sweep, from those of its scenarios in the order of their seeds
// (Sources/Simulator/Reports/SweepTally.swift).

const mask = (1n << 64n) - 1n;

// SplitMix64's finaliser (Sources/Primitives/RandomStream.swift).
function mixed(value) {
  let z = value;
  z = ((z ^ (z >> 30n)) * 0xbf58_476d_1ce4_e5b9n) & mask;
  z = ((z ^ (z >> 27n)) * 0x94d0_49bb_1331_11ebn) & mask;
  return z ^ (z >> 31n);
}

// hashes: BigInts. Sixteen hexadecimal digits, as `tracker simulate` prints them.
export function sweepHash(hashes) {
  const step = (hash, one) => (mixed(hash ^ one) + 0x9e37_79b9_7f4a_7c15n) & mask;
  return hashes.reduce(step, 0x5377_6565_7048_6173n).toString(16).padStart(16, "0");
}
