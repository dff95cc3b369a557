// Plants one mistake after another into the logic of the trackers, and has simulator and explorer find each.

import Foundation
import Simulator
import TrackerLogic

func stop(_ text: String) -> Never {
    FileHandle.standardError.write(Data((text + "\n").utf8))
    exit(64)
}

/// What the command line says.
///
/// The program plants one mistake after another into the logic, and counts the seeds until the simulator finds it.
///
///     planted-bugs [--bug NAME]… [--budget SEEDS] [--starts NUMBER] [--control SEEDS] [--markdown] [--verbose]
///                  [--keep-seeds]
///     planted-bugs --trace NAME SEED [clean]
///     planted-bugs --shrink NAME
///     planted-bugs --words NAME WORDS
///     planted-bugs --peers
///     planted-bugs --explorer
///     planted-bugs --explore NAME
///
/// The second prints what happens in one scenario with a mistake, or, where `clean` is said, without it. The third
/// makes the first run that a mistake breaks as small as it can be, and fails where it breaks another promise then. The
/// fourth runs with a mistake what the words of a link to the simulator's page name, and ends with 1 where a promise is
/// broken. The fifth looks for the mistakes of peers alone, in swarms. The sixth has the explorer look for mistakes, in
/// all schedules of small clusters; the last prints the shortest schedule in which one is met.
///
/// `--keep-seeds` writes what was found to `seeds.txt`; without it, the seeds there have to break what they broke.
///
/// Ends with 1 where a mistake is not found within its budget, where a kept seed does not reach its mistake, and where
/// the logic without any mistake alarms: then the alarm is false, or the mistake is nobody's plan.
struct Options {
    var sweep = Sweep(plants: [], starts: 3, budget: nil)
    /// Scenarios without a mistake.
    var controlCount = 300
    var isMarkdown = false
    var isVerbose = false
    var keepsSeeds = false

    init(_ words: ArraySlice<String>) {
        var words = words
        func value(of flag: String) -> String {
            guard let value = words.popFirst() else { stop("\(flag) needs a value") }
            return value
        }
        func number(of flag: String) -> Int {
            let text = value(of: flag)
            guard let number = Int(text), number >= 0 else { stop("\(flag) \(text): a whole number, please") }
            return number
        }
        while let flag = words.popFirst() {
            switch flag {
            case "--bug":
                let name = value(of: flag)
                guard let plant = Plant.find(name) else { stop("there is no mistake named \(name)") }
                sweep.plants.append(plant)
            case "--budget": sweep.budget = max(1, number(of: flag))
            case "--starts": sweep.starts = max(1, number(of: flag))
            case "--control": controlCount = number(of: flag)
            case "--markdown": isMarkdown = true
            case "--verbose": isVerbose = true
            case "--keep-seeds": keepsSeeds = true
            default: stop("unknown option \(flag)")
            }
        }
        if keepsSeeds, !sweep.plants.isEmpty { stop("--keep-seeds is for all mistakes at once") }
        if sweep.plants.isEmpty { sweep.plants = Plant.all }
    }
}

let arguments = CommandLine.arguments.dropFirst()

if arguments.first == "--worker" {
    let words = Array(arguments)
    guard words.count == 5, let plant = Plant.find(words[1]), let from = UInt64(words[3]), let count = Int(words[4])
    else { stop("--worker is for the program itself") }
    Worker.run(plant, isPlanted: words[2] == "planted", from: from, count: count)
    exit(0)
}

if arguments.first == "--trace" {
    let words = Array(arguments)
    guard words.count >= 3, let plant = Plant.find(words[1]), let seed = UInt64(words[2]) else {
        stop("--trace needs the name of a mistake and a seed")
    }
    let result = plant.scenario(seed, isPlanted: words.last != "clean").run(recordsTrace: true)
    for line in result.trace { print(line) }
    print(result.tally)
    exit(0)
}

if arguments.first == "--shrink" {
    guard arguments.count == 2, let plant = arguments.last.flatMap(Plant.find) else {
        stop("--shrink needs the name of a mistake")
    }
    exit(Smallest.find(plant) ? 0 : 1)
}

if arguments.first == "--words" {
    let words = Array(arguments)
    guard words.count == 3, let bug = PlantedBug(rawValue: words[1]) else {
        stop("--words needs the name of a mistake, and the words of a link to the simulator's page")
    }
    Planted.bug = bug
    do throws(WordsRefused) {
        let result = try Run(words: words[2]).scenario.run()
        for violation in result.violations { print(violation) }
        print("trace hash \(SweepReport.text(hash: result.traceHash))")
        exit(result.violations.isEmpty ? 0 : 1)
    } catch { stop("\(error)") }
}

if arguments.first == "--explore-worker" || arguments.first == "--explore" {
    guard arguments.count == 2, let exploration = arguments.last.flatMap(Exploration.find) else {
        stop("--explore needs the name of a mistake that the explorer looks for")
    }
    if arguments.first == "--explore-worker" {
        ExplorationTable.work(exploration)
        exit(0)
    }
    let explorer = exploration.walk(isPlanted: true)
    for line in explorer.trace() { print(line) }
    print(explorer.fault.map { "\($0.invariant.rawValue): \($0.detail)" } ?? "not found")
    print("\(explorer.states) states, \(explorer.transitions) transitions, \(exploration.bounds)")
    exit(explorer.fault == nil ? 1 : 0)
}

if arguments.first == "--explorer" {
    let began = ContinuousClock.now
    let table = ExplorationTable(Exploration.all)
    print(table.markdown)
    for alarm in table.alarms { print("without a mistake: \(alarm)") }
    for name in table.missed { print("not found: \(name)") }
    let (count, seconds) = (Exploration.all.count, (ContinuousClock.now - began) / .seconds(1))
    print("the explorer found \(count - table.missed.count) of \(count) mistakes in \(Int(seconds.rounded())) s")
    exit(table.missed.isEmpty && table.alarms.isEmpty ? 0 : 1)
}

if arguments.first == "--peers" { exit(PeerPlant.run() ? 0 : 1) }

let options = Options(arguments)
let sweep = options.sweep
let unplanted = PlantedBug.allCases.filter { Plant.find($0.rawValue) == nil }
guard unplanted.isEmpty else { stop("nobody looks for \(unplanted.map(\.rawValue))") }

let began = ContinuousClock.now
let isVerbose = options.isVerbose
let finds = sweep.run { line in if isVerbose { print(line) } }
let table = Table(sweep, finds)
print(options.isMarkdown ? table.markdown : table.text)
var alarms = finds.joined().flatMap(\.falseAlarms)
if options.controlCount > 0 { alarms += sweep.control(options.controlCount) }
if alarms.isEmpty {
    print("without a mistake: no alarm")
} else {
    print("without a mistake: \(alarms.count) alarms")
    for alarm in alarms.prefix(20) { print("  \(alarm)") }
}
if options.keepsSeeds { KeptSeeds(sweep, finds).write() }
let astray = KeptSeeds.read().check(sweep.plants)
print("kept seeds: \(astray.isEmpty ? "each breaks its promise with its mistake, and none without" : "astray")")
for line in astray { print("  \(line)") }
let seconds = (ContinuousClock.now - began) / .seconds(1)
print("\(sweep.plants.count - table.missed) of \(sweep.plants.count) mistakes found in \(Int(seconds.rounded())) s")
let arePeersFound = PeerPlant.run()
exit(table.missed == 0 && alarms.isEmpty && astray.isEmpty && arePeersFound ? 0 : 1)
