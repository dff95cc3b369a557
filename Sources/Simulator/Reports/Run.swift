// A run of a simulated cluster as a command line names it.

import Primitives
import TrackerLogic

/// A run of a simulated cluster as a command line names it: the seed, and what differs from what the seed means.
public struct Run: Sendable, Hashable {
    /// Trackers in one simulated cluster.
    public static let nodeRange = 1...30
    /// Seconds of faults: up to an hour.
    public static let secondsRange = 1...3600
    /// Clients in one simulated cluster.
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
        /// Somebody asks over HTTP.
        case visitors
    }

    /// Fixes all that is not named.
    public var seed: UInt64
    /// nil for the one that the seed means.
    public var profile: Profile?
    /// nil for what the seed draws.
    public var stress: Stress?
    /// Trackers in all; nil for as many as the seed draws.
    public var nodes: Int?
    /// Seconds of faults; nil for what the seed draws.
    public var seconds: Int?
    /// Clients without scrapers; nil for as many as the seed draws.
    public var clients: Int?
    /// The numbers of the trackers that are there, from 1, with their ids; nil for all.
    public var onlyTrackers: [Int]?
    /// The numbers of the clients and scrapers that are there, from 0; nil for all.
    public var onlyClients: [Int]?
    /// The faults by the clock that are carried out; nil for all.
    public var faults: [ChosenFault]?
    /// The faults injected at bad moments that are carried out; nil for all.
    public var injections: [Injection]?
    /// What is left out.
    public var without: [Noise] = []
    /// A story that people have reviewed, in the place of what a seed means; nothing else of a run is named with it but
    /// what-ifs.
    public var story: Story?
    /// What a person does to it, in the order of the steps.
    public var whatIfs: [WhatIf] = []

    /// Takes the fields as they are.
    public init(
        seed: UInt64, profile: Profile? = nil, stress: Stress? = nil, nodes: Int? = nil,
        seconds: Int? = nil
    ) {
        self.seed = seed
        self.profile = profile
        self.stress = stress
        self.nodes = nodes
        self.seconds = seconds
    }

    /// All profiles, as a command line names them.
    public static var profileNames: [String] { Profile.allCases.map { $0.rawValue } }
    /// All kinds of harsher conditions, as a command line names them.
    public static var stressNames: [String] { Stress.allCases.map { $0.rawValue } }

    /// A run whose profile and conditions are named by texts.
    ///
    /// - Parameters:
    ///   - seed: fixes all that is not named.
    ///   - profileName: one of `profileNames`; another one counts as none.
    ///   - stressName: one of `stressNames`; another one counts as none.
    ///   - nodes: trackers in all; nil for as many as the seed draws.
    ///   - seconds: of faults; nil for what the seed draws.
    public init(seed: UInt64, profileName: String?, stressName: String?, nodes: Int?, seconds: Int?) {
        self.init(
            seed: seed, profile: profileName.flatMap(Profile.init(rawValue:)),
            stress: stressName.flatMap(Stress.named), nodes: nodes, seconds: seconds)
    }

    /// The profile that was named, or the seed's.
    public var chosenProfile: Profile { story?.profile ?? profile ?? Profile.drawn(seed: seed, nodes: nodes) }

    /// What exactly is run.
    public var scenario: Scenario {
        var scenario = story?.scenario ?? Scenario(seed: seed, profile: chosenProfile, nodes: nodes)
        scenario.whatIfs = whatIfs
        if story != nil { return scenario }
        if let stress { scenario.options.harden(stress) }
        apply(to: &scenario.options)
        return scenario
    }

    /// Changes in a scenario what this run leaves out, shortens or names otherwise; not its trackers in all.
    public func apply(to options: inout ScenarioOptions) {
        if let seconds { options.coreLength = .seconds(Int64(seconds)) }
        if let clients {
            options.clientCount = clients
            options.makeRoom()
        }
        options.onlyTrackers = onlyTrackers
        options.onlyClients = onlyClients
        options.faults.onlyFaults = faults
        options.faults.onlyInjections = injections
        for noise in without { options.leaveOut(noise) }
    }

    /// The command that runs exactly this.
    public var command: String {
        if story != nil { return "tracker replay --words '\(words)'" }
        var words = ["tracker replay \(seed)"]
        if let profile { words.append("--profile \(profile.rawValue)") }
        if let stress { words.append("--stress \(stress.rawValue)") }
        if let nodes { words.append("--nodes \(nodes)") }
        if let seconds { words.append("--seconds \(seconds)") }
        if let clients { words.append("--clients \(clients)") }
        func list(_ name: String, _ items: [some CustomStringConvertible]?) {
            guard let items else { return }
            words.append("\(name) \(items.isEmpty ? "none" : items.map { $0.description }.joined(separator: ","))")
        }
        list("--only-trackers", onlyTrackers)
        list("--only-clients", onlyClients)
        list("--faults", faults)
        list("--injections", injections)
        if !without.isEmpty { list("--without", without.map { $0.rawValue }) }
        for whatIf in whatIfs { words.append("--what-if \(whatIf)") }
        return words.joined(separator: " ")
    }

    /// Reads `3,7,12`, or `none`; rising order, each once.
    ///
    /// - Parameters:
    ///   - text: as written on a command line.
    ///   - least: the least number that there is.
    /// - Returns: nil where it is neither.
    public static func numbers(_ text: String, from least: Int = 1) -> [Int]? {
        guard let all = items(text, { part in Int(part).flatMap { $0 >= least ? $0 : nil } }) else { return nil }
        return all.enumerated().filter { !all[..<$0.offset].contains($0.element) }.map { $0.element }.sorted()
    }

    /// Reads `3,17/4`, or `none`.
    public static func faults(_ text: String) -> [ChosenFault]? { items(text) { ChosenFault($0) } }

    /// Reads `2-okSent-1,3-halfWay-2`, or `none`.
    public static func injections(_ text: String) -> [Injection]? { items(text) { Injection($0) } }

    private static func items<Item>(_ text: String, _ read: (Substring) -> Item?) -> [Item]? {
        if text == "none" { return [] }
        var items: [Item] = []
        for part in text.split(separator: ",", omittingEmptySubsequences: false) {
            guard let item = read(part) else { return nil }
            items.append(item)
        }
        return items
    }
}

extension ScenarioOptions {
    fileprivate mutating func leaveOut(_ noise: Run.Noise) {
        switch noise {
        case .network: network = .healed
        case .bus: (bus, slipGap) = (.healed, nil)
        case .disks: disk = .healed
        case .clocks: (maxDrift, maxWallError) = (0, 0)
        case .polling: maxPollDelay = .microseconds(200)
        case .latecomers: (maxStartDelay, latecomerDelay) = (.milliseconds(100), .zero)
        case .strangers: strangerCount = 0
        case .scrapers: hasScrapers = false
        case .visitors: visitorCount = 0
        }
    }

    /// What the scenario is like, on one line.
    public var summary: String {
        var words = ["\(nodeCount) trackers", "entry \(entry.rawValue)"]
        if spareCount > 0 { words.append("\(spareCount) spare") }
        if unnumberedCount > 0 { words.append("\(unnumberedCount) without an id") }
        words.append("\(coreLength.wholeMilliseconds / 1000) s of faults")
        if let onlyTrackers { words.append("only tracker \(onlyTrackers.map(String.init).joined(separator: ", "))") }
        let people = (0..<clientCount + scraperCount).filter(hasClient)
        let clients = people.count { $0 < clientCount }
        words.append("\(clients) clients, \(people.count - clients) scrapers, \(swarmCount) swarms")
        func perMille(_ count: Int, _ what: String) { if count > 0 { words.append("\(count) ‰ \(what)") } }
        perMille(bus.lossPerMille, "messages lost")
        perMille(bus.repeatPerMille, "repeated")
        perMille(bus.stragglerPerMille, "late")
        perMille(bus.redeliveredPerMille, "delivered again")
        if slipGap != nil { words.append("single messages lost") }
        perMille(network.lossPerMille, "datagrams lost")
        perMille(disk.failPerMille, "writes failing")
        let kinds = faults.meanGap == nil ? [] : faults.kinds.map { "\($0)" }
        words += ScenarioOptions.summary("faults", kinds, faults.onlyFaults?.map { $0.description })
        let moments = Moment.allCases.filter { faults.injectOneIn[$0.rawValue] > 0 }.map { "\($0)" }
        words += ScenarioOptions.summary("injections at", moments, faults.onlyInjections?.map { $0.description })
        return words.joined(separator: ", ")
    }

    /// What goes wrong of one sort, in words.
    ///
    /// - Parameters:
    ///   - what: of which sort.
    ///   - kinds: what there is of it.
    ///   - numbers: of those that are carried out; nil for all.
    /// - Returns: nothing where nothing goes wrong.
    private static func summary(_ what: String, _ kinds: [String], _ numbers: [String]?) -> [String] {
        guard !kinds.isEmpty, numbers != [] else { return [] }
        let only = numbers.map { " (only number \($0.joined(separator: ", ")))" } ?? ""
        return ["\(what)\(only): \(kinds.joined(separator: " "))"]
    }
}
