/// A run of a simulated cluster as a command line names it: the seed, and what differs from what the seed means.

import Primitives
import TrackerLogic

public struct ClusterRun: Sendable, Hashable {
    /// Trackers in one simulated cluster.
    public static let nodeRange = 1...30
    /// Seconds of faults: up to an hour.
    public static let secondsRange = 1...3600
    public static let clientRange = 0...1000

    /// A kind of trouble that goes on all the time, and may be left out.
    public enum Noise: String, Sendable, Hashable, CaseIterable {
        /// Clients' datagrams are lost, repeated and late.
        case network
        /// Messages between trackers are.
        case bus
        /// Disks are slow, and fail.
        case disks
        /// Clocks go wrong.
        case clocks
        /// Trackers look at their datagrams late.
        case polling
        /// Trackers come late.
        case latecomers
        /// Somebody sends junk.
        case strangers
        case scrapers
    }

    public var seed: UInt64
    /// nil for the profiles in turn, by seed.
    public var profile: ClusterProfile?
    /// nil for what the seed draws.
    public var ground: ClusterGround?
    /// nil for as many as the seed draws, and so on.
    public var nodes: Int?
    public var seconds: Int?
    public var clients: Int?
    /// The numbers of the faults by the clock that are carried out; nil for all.
    public var faults: [Int]?
    /// The numbers of the strikes at bad moments that are carried out; nil for all.
    public var strikes: [Int]?
    /// What is left out.
    public var without: [Noise] = []

    public init(
        seed: UInt64, profile: ClusterProfile? = nil, ground: ClusterGround? = nil, nodes: Int? = nil,
        seconds: Int? = nil
    ) {
        self.seed = seed
        self.profile = profile
        self.ground = ground
        self.nodes = nodes
        self.seconds = seconds
    }

    public static var profileNames: [String] { ClusterProfile.allCases.map(\.rawValue) }
    public static var groundNames: [String] { ClusterGround.allCases.map(\.rawValue) }

    /// - Parameters:
    ///   - profileName: one of `profileNames`; another one counts as none.
    ///   - groundName: one of `groundNames`; another one counts as none.
    public init(seed: UInt64, profileName: String?, groundName: String?, nodes: Int?, seconds: Int?) {
        self.init(
            seed: seed, profile: profileName.flatMap(ClusterProfile.init(rawValue:)),
            ground: groundName.flatMap(ClusterGround.init(rawValue:)), nodes: nodes, seconds: seconds)
    }

    /// The profile that was named, or the seed's.
    public var chosenProfile: ClusterProfile {
        let all = ClusterProfile.allCases
        return profile ?? all[Int(seed % UInt64(all.count))]
    }

    public var scenario: ClusterScenario {
        var scenario = ClusterScenario(seed: seed, profile: chosenProfile, nodes: nodes)
        if let ground { scenario.options.harden(ground) }
        if let seconds { scenario.options.coreLength = .seconds(Int64(seconds)) }
        if let clients { scenario.options.clientCount = clients }
        scenario.options.faults.onlyFaults = faults
        scenario.options.faults.onlyStrikes = strikes
        for noise in without { scenario.options.leaveOut(noise) }
        return scenario
    }

    /// The command that runs exactly this.
    public var command: String {
        var words = ["tracker replay \(seed)"]
        if let profile { words.append("--profile \(profile.rawValue)") }
        if let ground { words.append("--ground \(ground.rawValue)") }
        if let nodes { words.append("--nodes \(nodes)") }
        if let seconds { words.append("--seconds \(seconds)") }
        if let clients { words.append("--clients \(clients)") }
        func list(_ name: String, _ items: [String]?) {
            guard let items else { return }
            words.append("\(name) \(items.isEmpty ? "none" : items.joined(separator: ","))")
        }
        list("--faults", faults?.map(String.init))
        list("--strikes", strikes?.map(String.init))
        if !without.isEmpty { list("--without", without.map(\.rawValue)) }
        return words.joined(separator: " ")
    }

    /// Reads `3,7,12`, or `none`; rising order, each once.
    public static func numbers(_ text: String) -> [Int]? {
        if text == "none" { return [] }
        var numbers: [Int] = []
        for part in text.split(separator: ",", omittingEmptySubsequences: false) {
            guard let number = Int(part), number >= 1 else { return nil }
            if !numbers.contains(number) { numbers.append(number) }
        }
        return numbers.sorted()
    }
}

extension ClusterOptions {
    fileprivate mutating func leaveOut(_ noise: ClusterRun.Noise) {
        switch noise {
        case .network: network = .healed
        case .bus: bus = .healed
        case .disks: disk = .healed
        case .clocks: (maxDrift, maxWallError) = (0, 0)
        case .polling: maxPollDelay = .microseconds(200)
        case .latecomers: (maxStartDelay, latecomerDelay) = (.milliseconds(100), .zero)
        case .strangers: strangerCount = 0
        case .scrapers: scraperCount = 0
        }
    }

    /// What the scenario is like, on one line.
    public var summary: String {
        var words = ["\(nodeCount) trackers", "entry \(entry.rawValue)"]
        if spareCount > 0 { words.append("\(spareCount) spare") }
        if unnumberedCount > 0 { words.append("\(unnumberedCount) without an id") }
        words.append("\(coreLength.wholeMilliseconds / 1000) s of faults")
        words.append("\(clientCount) clients, \(scraperCount) scrapers, \(swarmCount) swarms")
        func perMille(_ count: Int, _ what: String) { if count > 0 { words.append("\(count) ‰ \(what)") } }
        perMille(bus.lossPerMille, "messages lost")
        perMille(bus.repeatPerMille, "repeated")
        perMille(bus.stragglerPerMille, "late")
        perMille(bus.redeliveredPerMille, "delivered again")
        perMille(network.lossPerMille, "datagrams lost")
        perMille(disk.failPerMille, "writes failing")
        let kinds = faults.meanGap == nil ? [] : faults.kinds.map { "\($0)" }
        words += ClusterOptions.summary("faults", kinds, faults.onlyFaults)
        let moments = ClusterMoment.allCases.filter { faults.struckOneIn[$0.rawValue] > 0 }.map { "\($0)" }
        words += ClusterOptions.summary("strikes at", moments, faults.onlyStrikes)
        return words.joined(separator: ", ")
    }

    /// - Parameter numbers: of those that are carried out; nil for all.
    private static func summary(_ what: String, _ kinds: [String], _ numbers: [Int]?) -> [String] {
        guard !kinds.isEmpty, numbers != [] else { return [] }
        let only = numbers.map { " (only number \($0.map(String.init).joined(separator: ", ")))" } ?? ""
        return ["\(what)\(only): \(kinds.joined(separator: " "))"]
    }
}
