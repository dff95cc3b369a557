// Where mutants are looked for: simulated worlds, and the explorer's small clusters.

import Foundation
import PeerLogic
import Primitives
import Simulator
import TrackerLogic

/// A kind of world, in which a seed means one run.
enum Ground: Hashable {
    /// Trackers, as a profile has them, on plain ground or a harsher one.
    case trackers(Profile, Stress?)
    /// A swarm of peers.
    case swarm
    /// All schedules of a small cluster; its seed is the place of the bounds in `explorations`.
    case explorer
    /// The stories that people have reviewed; its seed is the place of a story. One that is told otherwise than it was
    /// written down breaks `transcript`.
    case stories

    /// The explorer's bounds, the cheapest first: each takes a second at most.
    static let explorations: [ExplorerOptions] = {
        var all: [ExplorerOptions] = []
        func add(_ change: (inout ExplorerOptions) -> Void) {
            var options = ExplorerOptions()
            (options.elections, options.requests, options.network) = (1, 1, .inOrder)
            change(&options)
            options.reduction = options.network == .inOrder ? .compact : .joined
            options.maxStates = 3_000_000
            all.append(options)
        }
        add { $0.start = .formed }
        add { $0.failures = 1 }
        add { $0.waits = 1 }
        add { $0.network = .again }
        add { ($0.elections, $0.scrapes, $0.network) = (0, 1, .once) }
        add { $0.restarts = 1 }
        return all
    }()

    /// All grounds.
    static let all: [Ground] =
        [.explorer, .stories, .swarm] + Profile.allCases.map { .trackers($0, nil) }
        + Stress.allCases.flatMap { stress in Profile.allCases.map { .trackers($0, stress) } }

    /// How it is named: `paxos`, `paxos+disks`, `swarm`, `explorer`, `stories`.
    var name: String {
        switch self {
        case .trackers(let profile, nil): profile.rawValue
        case .trackers(let profile, let stress?): "\(profile.rawValue)+\(stress.rawValue)"
        case .swarm: "swarm"
        case .explorer: "explorer"
        case .stories: "stories"
        }
    }

    static func named(_ name: String) -> Ground? { all.first { $0.name == name } }

    /// Runs what a seed means.
    func run(_ seed: UInt64) -> Outcome {
        switch self {
        case .trackers(let profile, let stress):
            var run = Run(seed: seed, profile: profile)
            run.stress = stress
            let result = run.scenario.run()
            return Outcome(hash: result.traceHash, broken: result.violations.first?.invariant.rawValue)
        case .swarm:
            let result = TransferScenario(seed: seed).run()
            return Outcome(hash: result.traceHash, broken: result.violations.first?.invariant.rawValue)
        case .explorer:
            guard seed < UInt64(Ground.explorations.count) else { return Outcome(hash: 0, broken: nil) }
            var explorer = Explorer(Ground.explorations[Int(seed)])
            explorer.walk()
            let hash = UInt64(explorer.states) << 32 | UInt64(explorer.transitions & 0xFFFF_FFFF)
            return Outcome(hash: hash, broken: explorer.fault?.invariant.rawValue)
        case .stories:
            guard seed < UInt64(Story.allCases.count) else { return Outcome(hash: 0, broken: nil) }
            let story = Story.allCases[Int(seed)]
            let text = story.tell().joined(separator: "\n") + "\n"
            let isKept = text == Ground.transcript(of: story)
            return Outcome(hash: isKept ? 1 : 0, broken: isKept ? nil : "transcript")
        }
    }

    /// How a story was written down, in the folder that `TRANSCRIPTS` names.
    private static func transcript(of story: Story) -> String {
        let folder = URL(filePath: ProcessInfo.processInfo.environment["TRANSCRIPTS"] ?? ".")
        guard let text = try? String(contentsOf: folder.appending(path: "\(story.rawValue).txt"), encoding: .utf8)
        else {
            stop("no transcript of \(story.rawValue) in \(folder.path): TRANSCRIPTS has to name their folder")
        }
        return text
    }
}

/// What came of a run.
struct Outcome {
    /// The same for the same run; of another one, another.
    var hash: UInt64
    /// The promise that was broken.
    var broken: String?
}
