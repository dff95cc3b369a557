// Runs the simulator with one mutant alive, or traces which mutants a run reaches.
//
//     judge grounds                     the names of all grounds
//     judge trace GROUND FROM COUNT     runs of the logic as it is, and what they reach
//     judge try POINT MUTANT            runs with a mutant alive, as they are read
//
// `trace` prints for each run `run SEED HASH MILLISECONDS`, or with `broken RULE` at the end; then, for each mutant
// that any has reached, `seen POINT MUTANT SEED…`: the runs in which it would have gone another way, the first of them
// and so many in all.
//
// `try` reads lines `GROUND SEED HASH`, and stops at the first that notices: it prints `begin GROUND SEED`, and then
// `noticed RULE`, `other` where the run goes another way and no rule is broken, or `same`. What traps has begun and not
// ended; what does not end is stopped by its processor time.

import Foundation
import MutationTable
import Simulator

func stop(_ text: String) -> Never {
    FileHandle.standardError.write(Data((text + "\n").utf8))
    exit(64)
}

func say(_ text: String) {
    FileHandle.standardOutput.write(Data((text + "\n").utf8))
}

func ground(_ name: String) -> Ground {
    guard let ground = Ground.named(name) else { stop("no ground is named \(name): judge grounds") }
    return ground
}

let words = CommandLine.arguments.dropFirst()
switch (words.first, words.count) {
case ("grounds", 1):
    for ground in Ground.all { say(ground.name) }

case ("trace", 4):
    guard let from = UInt64(words[3]), let count = UInt64(words[4]) else { stop("trace GROUND FROM COUNT") }
    Tracing.run(ground(words[2]), from: from, count: count)

case ("try", 3):
    guard let point = UInt32(words[2]), let mutant = UInt8(words[3]) else { stop("try POINT MUTANT") }
    mutation_bring_alive(point, mutant)
    while let line = readLine() {
        let parts = line.split(separator: " ")
        guard parts.count == 3, let seed = UInt64(parts[1]), let hash = UInt64(parts[2], radix: 16) else {
            stop("\(line): GROUND SEED HASH, please")
        }
        say("begin \(parts[0]) \(seed)")
        let outcome = Limits.within { ground(String(parts[0])).run(seed) }
        if let rule = outcome.broken {
            say("noticed \(rule)")
            break
        }
        say(outcome.hash == hash ? "same" : "other")
    }

default: stop("judge grounds | trace GROUND FROM COUNT | try POINT MUTANT")
}
