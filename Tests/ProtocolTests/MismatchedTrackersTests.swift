// Trackers that were told different things: neither hears the other, both say so once, and the master lets nobody in
// who is not of its kind.

import Primitives
import Testing
import TrackerLogic
import Wire

/// Some nodes on a bus that loses nothing, with disks that are quick.
private struct Company {
    var nodes: [TrackerNode] = []
    var told: [[Observation]] = []
    /// What becomes of a node's writes; nil where they succeed.
    var failures: [StorageFailure?] = []
    /// Directions in which nothing comes through: from one node to another.
    var cuts: [(from: Int, to: Int)] = []
    var now = ClockReading(
        monotonic: Instant(nanoseconds: 5_000_000_000), wall: WallTime(milliseconds: NodeHarness.wallStart))
    private var effects = Effects()

    init(_ configurations: [NodeConfiguration]) {
        for (index, configuration) in configurations.enumerated() { add(configuration, incarnation: UInt64(index + 1)) }
    }

    mutating func add(_ configuration: NodeConfiguration, incarnation: UInt64) {
        nodes.append(
            TrackerNode(
                configuration: configuration, incarnation: incarnation, secret: NodeHarness.secret, record: nil,
                seed: incarnation))
        told.append([])
        failures.append(nil)
        step(nodes.count - 1, .started)
        step(nodes.count - 1, .busConnected)
    }

    /// One step of a node; `isHeard` is whether the others hear what comes of it.
    mutating func step(_ node: Int, _ event: Event) {
        var queue = [(node, event)]
        var count = 0
        while !queue.isEmpty {
            let (node, event) = queue.removeFirst()
            nodes[node].step(event, now: now, into: &effects)
            told[node] += effects.observations
            for persist in effects.persists {
                let failure = failures[node]
                queue.append(
                    (node, failure.map { .persistFailed(persist.token, $0) } ?? .persisted(persist.token)))
            }
            for message in effects.messages {
                for other in nodes.indices where other != node {
                    guard !cuts.contains(where: { $0 == (node, other) }) else { continue }
                    queue.append((other, .messageReceived(message)))
                }
            }
            effects.removeAll()
            count += 1
            precondition(count < 100_000, "messages lead to messages without end")
        }
    }

    mutating func run(_ span: Duration) {
        let end = now.monotonic + span
        while now.monotonic < end {
            let pause = Duration.milliseconds(50)
            now.monotonic = now.monotonic + pause
            now.wall.milliseconds += pause.wholeMilliseconds
            for node in nodes.indices { step(node, .deadlineReached) }
        }
    }

    func status(_ node: Int) -> ClusterStatus { nodes[node].clusterStatus(now: now.monotonic) }

    var masters: [UInt32] { nodes.map { $0.clusterStatus(now: now.monotonic).master ?? 0 } }
    var serving: [Bool] { nodes.map { $0.clusterStatus(now: now.monotonic).isServing } }

    func reasons(_ node: Int) -> [StepDownReason] {
        told[node].compactMap { if case .steppedDown(_, let reason) = $0 { reason } else { nil } }
    }

    func differences(_ node: Int) -> [Observation] {
        told[node].filter { if case .settingsDiffer = $0 { true } else { false } }
    }
}

@Suite struct MismatchedTrackersTests {
    private func configuration(
        _ id: UInt32, mode: ClusterConfiguration.Mode = .quorum, members: [UInt32] = [1, 2, 3],
        _ change: (inout NodeConfiguration) -> Void = { _ in }
    ) -> NodeConfiguration {
        var configuration = NodeConfiguration.test
        configuration.id = id
        configuration.cluster = ClusterConfiguration(mode: mode, members: mode == .quorum ? members : [])
        change(&configuration)
        return configuration
    }

    @Test func `trackers that were told the same form a cluster`() {
        var company = Company([1, 2, 3].map { configuration($0) })
        company.run(.seconds(8))
        #expect(company.masters == [3, 3, 3])
        #expect(company.serving == [true, true, true])
        for node in 0..<3 { #expect(company.differences(node) == []) }
    }

    @Test func `who is told another timing is named on both sides, once, and stays out`() {
        let odd = configuration(3) { $0.cluster.keepalive = .milliseconds(1500) }
        var company = Company([configuration(1), configuration(2), odd])
        company.run(.seconds(20))
        // Blank members form a cluster when all are there that were told the same: this one is not.
        #expect(company.serving == [false, false, false])
        #expect(company.differences(0) == [.settingsDiffer(tracker: 3, [.keepalive])])
        #expect(company.differences(1) == [.settingsDiffer(tracker: 3, [.keepalive])])
        #expect(
            company.differences(2).sorted { "\($0)" < "\($1)" } == [
                .settingsDiffer(tracker: 1, [.keepalive]), .settingsDiffer(tracker: 2, [.keepalive]),
            ])
        #expect(company.status(0).mismatched.map(\.life.id) == [3])
    }

    @Test(arguments: [SharedSetting.mode, .election, .vote, .keepalive, .missed, .entry])
    func `a master refuses who is told something else; the others go on`(_ setting: SharedSetting) {
        var company = Company([1, 2].map { configuration($0, mode: .survivor) })
        company.run(.seconds(8))
        #expect(company.masters == [2, 2])
        let odd = configuration(3, mode: .survivor) { configuration in
            switch setting {
            case .mode: configuration.cluster = ClusterConfiguration(mode: .quorum, members: [1, 2, 3])
            case .election: configuration.cluster.election = .lowest
            case .vote: configuration.cluster.vote = .allDropped(after: .seconds(5))
            case .keepalive: configuration.cluster.keepalive = .milliseconds(900)
            case .missed: configuration.cluster.missed = 3
            case .entry: configuration.cluster.entry = .group
            case .members, .interval, .minInterval, .intervalJitter, .targetRate, .peerLifetime: break
            }
        }
        company.add(odd, incarnation: 9)
        company.run(.seconds(30))
        #expect(company.masters == [2, 2, 0])
        #expect(company.serving == [true, true, false])
        #expect(company.differences(0) == [.settingsDiffer(tracker: 3, [setting])])
        #expect(company.status(2).refusal == .otherSettings)
        #expect(company.told[2].filter { $0 == .joinRefused(.otherSettings) }.count == 1)
        #expect(!company.told[1].contains { if case .steppedDown = $0 { true } else { false } })
    }

    @Test func `of two unlike masters the one of the higher epoch stays`() {
        let odd = configuration(2, mode: .survivor) { $0.cluster.missed = 4 }
        var company = Company([configuration(1, mode: .survivor), odd])
        company.run(.seconds(30))
        #expect(company.serving.count { $0 } == 1)
    }

    @Test func `what the master alone says may differ, and is told all the same`() {
        let odd = configuration(1) { $0.interval = 900 }
        var company = Company([odd, configuration(2), configuration(3)])
        company.run(.seconds(8))
        #expect(company.serving == [true, true, true])
        #expect(company.differences(2) == [.settingsDiffer(tracker: 1, [.interval])])
    }

    @Test func `other members at one of three: no cluster is formed, and all say at whom`() {
        var company = Company([
            configuration(1), configuration(2, members: [1, 2, 4]), configuration(3),
        ])
        company.run(.seconds(8))
        #expect(company.serving == [false, false, false])
        #expect(company.differences(0) == [.settingsDiffer(tracker: 2, [.members])])
        #expect(company.differences(2) == [.settingsDiffer(tracker: 2, [.members])])
        #expect(company.differences(1).count == 2)
        #expect(company.status(0).isForming && company.status(0).neverHeard == [])
    }

    @Test func `a newcomer with other members than the cluster is refused by its master`() {
        var company = Company([1, 2, 3].map { configuration($0) })
        company.run(.seconds(8))
        company.add(configuration(4, members: [1, 2]), incarnation: 9)
        company.run(.seconds(4))
        #expect(company.status(3).refusal == .otherMembers)
        #expect(company.differences(2) == [.settingsDiffer(tracker: 4, [.members])])
        // One that was told the same is let in, when nobody waits any more for what it might have said before.
        company.add(configuration(5), incarnation: 10)
        company.run(.seconds(8))
        #expect(company.status(4).refusal == nil && company.status(4).master == 3)
    }

    @Test func `who was never heard is known by name`() {
        var company = Company([1, 2].map { configuration($0) })
        company.run(.seconds(8))
        #expect(company.status(0).isForming && company.status(0).neverHeard == [3])
    }

    @Test func `a report reaches the others, with the difference of the clocks`() {
        var company = Company([1, 2, 3].map { configuration($0) })
        company.run(.seconds(8))
        var report = TrackerReport()
        report.host = "one.example"
        report.wallTime = UInt64(company.now.wall.milliseconds + 2_500)
        company.step(0, .reportMade(report))
        let view = company.status(2).trackers.first { $0.life.id == 1 }
        #expect(view?.report?.report.host == "one.example")
        #expect(view?.report?.clockDifference == 2_500)
        #expect(company.status(2).trackers.first { $0.life.id == 2 }?.report == nil)
    }

    @Test func `a cut in one direction is told by whoever does not hear, and by nobody else`() {
        var company = Company([1, 2, 3].map { configuration($0) })
        company.run(.seconds(8))
        company.cuts = [(from: 0, to: 1)]
        company.run(.milliseconds(5_350))
        for node in 0..<3 { company.step(node, .reportMade(TrackerReport())) }
        // What each is told by the others; tracker 2 misses what tracker 1 reports, and the rest is told to all.
        func hears(_ teller: UInt32, asToldTo node: Int) -> [TrackerReport.Heard]? {
            company.status(node).trackers.first { $0.life.id == teller }?.report?.report.heard
        }
        func row(_ heard: (UInt32, Bool)...) -> [[UInt32]] { heard.map { [$0.0, $0.1 ? 1 : 0] } }
        func shown(_ heard: [TrackerReport.Heard]?) -> [[UInt32]]? { heard?.map { [$0.id, $0.isUp ? 1 : 0] } }
        #expect(shown(hears(1, asToldTo: 2)) == row((2, true), (3, true)))
        #expect(shown(hears(2, asToldTo: 2)) == row((1, false), (3, true)))
        #expect(shown(hears(2, asToldTo: 0)) == row((1, false), (3, true)))
        #expect(shown(hears(3, asToldTo: 0)) == row((1, true), (2, true)))
        #expect(hears(1, asToldTo: 1) == nil)
        // Whole seconds, rounded up: a keepalive comes each second, and the cut one has been silent since it was cut.
        let silences = hears(2, asToldTo: 2)?.map(\.silence) ?? []
        #expect(silences.count == 2 && (6...7).contains(silences[0]) && (0...1).contains(silences[1]))
        // And how old a report is.
        company.now.monotonic = company.now.monotonic + .milliseconds(700)
        #expect(company.status(2).trackers.map(\.reportAge) == [.milliseconds(700), .milliseconds(700), .zero])
        // What has been silent for a day is silent for as long as can be told.
        company.now.monotonic = company.now.monotonic + .seconds(86_400)
        company.step(1, .reportMade(TrackerReport()))
        #expect(hears(2, asToldTo: 2)?.map(\.silence) == [.max, .max])
    }

    @Test func `of two that come back together, the one that is preferred to both is handed the role`() {
        var company = Company([configuration(1, mode: .survivor)])
        company.run(.seconds(8))
        #expect(company.masters == [1])
        // The other one has been in step for longer when the time comes.
        for id: UInt32 in [2, 3] {
            company.add(configuration(id, mode: .survivor), incarnation: UInt64(id))
            company.run(.milliseconds(300))
        }
        company.run(.seconds(12))
        #expect(company.masters == [3, 3, 3])
        #expect(company.told[1].allSatisfy { if case .stands = $0 { false } else { true } })
    }

    // MARK: - Disks, and stops

    private static func torrent(_ number: Int) -> OperatorCommand {
        .fileTorrents([RegisteredTorrent(infoHash: .numbered(number), name: "x", byteCount: 1)])
    }

    @Test func `a slave whose disk alone is full says that its vote is missing, and no more`() {
        var company = Company([1, 2, 3].map { configuration($0) })
        company.run(.seconds(8))
        company.failures[0] = .full
        company.step(2, .commandReceived(Self.torrent(1)))
        company.run(.seconds(3))
        #expect(company.nodes[2].state.registry.count == 1)
        #expect(company.told[0].filter { $0 == .voteFailed(.full) }.count == 1)
        #expect(!company.told[0].contains { if case .storageFailed = $0 { true } else { false } })
        #expect(company.nodes[0].status.storageFailure == .full)
        company.failures[0] = nil
        company.step(2, .commandReceived(Self.torrent(2)))
        company.run(.seconds(8))
        #expect(company.told[0].contains(.voteRecovered) && company.nodes[0].status.storageFailure == nil)
    }

    @Test func `a master whose disk breaks steps down for its disk, and not for the bus`() {
        var company = Company([1, 2, 3].map { configuration($0) })
        company.run(.seconds(8))
        company.failures[2] = .broken
        company.step(2, .commandReceived(Self.torrent(1)))
        #expect(company.reasons(2) == [.diskBroken])
    }

    @Test func `who stops in good order says that it stops`() {
        var company = Company([configuration(1, mode: .survivor)])
        company.run(.seconds(8))
        #expect(company.masters == [1])
        company.step(0, .commandReceived(.drain))
        company.run(.seconds(5))
        #expect(company.reasons(0) == [.stopping] && company.told[0].last == .drained)
    }

    @Test func `what a slave is not to carry out is dropped, and is no refusal`() {
        var company = Company([1, 2, 3].map { configuration($0) })
        company.run(.seconds(8))
        company.step(0, .commandReceived(Self.torrent(1)))
        #expect(
            company.told[0].last == .commandDropped("this tracker follows tracker 3: that one has to be asked"))
    }
}
