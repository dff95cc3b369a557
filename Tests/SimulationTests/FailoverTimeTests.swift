// How long nobody is answered when the master dies: exact, because time is simulated.
//
// The tests with the real program assert that no client has to ask again, however busy the machine is; the time itself
// is asserted here.

import Primitives
import Simulator
import Testing
import TrackerLogic

@Suite("The time of a failover", .computes)
struct FailoverTimeTests {
    private static let trackers: UInt16 = 6969

    private struct Request: Hashable {
        var client: SocketAddress
        var transaction: [UInt8]
    }

    /// The master dies; nothing else goes wrong.
    private func scenario(seed: UInt64, _ profile: Profile, _ entry: ClusterConfiguration.Entry)
        -> Scenario
    {
        var scenario = Scenario(seed: seed, profile: profile, nodes: 3, seconds: 20)
        var options = ScenarioOptions()
        options.coreLength = .seconds(20)
        (options.clientCount, options.clientWait, options.interval) = (20, .seconds(15), 6)
        options.entry = entry
        scenario.options = options
        // At any time between two keepalives, whoever is master then.
        let time = Duration.seconds(8) + .milliseconds(Int64(seed) * 97 % 2000)
        let before = scenario.run(recordsHistory: true).transitions.filter { $0.time < Instant(nanoseconds: 0) + time }
        let master = before.last { $0.kind == .becameMaster }?.node ?? 0
        scenario.options.script = [ScriptedEvent(at: time, .crash(master, .seconds(60)))]
        return scenario
    }

    /// The longest that a request which reached somebody alive was without an answer.
    private func slowest(
        _ result: ScenarioResult, _ entry: ClusterConfiguration.Entry
    ) throws -> (span: Duration, count: Int) {
        let death = try #require(result.transitions.first { $0.kind == .died }).time
        let captures = result.datagrams.filter { $0.time < death + .seconds(10) }
        let speakers = Set(captures.map(\.source))
        var answered: [Request: Instant] = [:]
        for reply in captures {
            let request = Request(client: reply.destination, transaction: Array(reply.bytes.dropFirst(4).prefix(4)))
            if answered[request] == nil { answered[request] = reply.time }
        }
        let living = Set(
            captures.filter { $0.time > death + .seconds(1) && $0.time < death + .seconds(5) }.map(\.source))
        var (longest, count) = (Duration.zero, 0)
        for request in captures where request.time > death - .seconds(1) && request.time < death + .seconds(5) {
            let isToALivingTracker =
                request.destination.port == Self.trackers && living.contains(request.destination)
            // A group has no answers of its own.
            let isHeard = entry == .group ? !speakers.contains(request.destination) : isToALivingTracker
            guard isHeard else { continue }
            let key = Request(client: request.source, transaction: Array(request.bytes.dropFirst(12).prefix(4)))
            guard let time = answered[key] else {
                Issue.record("seed \(result.seed): no answer to \(request)")
                continue
            }
            longest = max(longest, time - request.time)
            count += 1
        }
        return (longest, count)
    }

    /// The time of detection is the profile's; a fifth of a second is for the election.
    @Test(arguments: Profile.clusters, [ClusterConfiguration.Entry.any, .group])
    func `whoever asks is answered once the dead master was missed, and an election later`(
        _ profile: Profile, _ entry: ClusterConfiguration.Entry
    ) throws {
        let detection = profile == .rotating ? Duration.seconds(1) : .seconds(2)
        var (longest, total) = (Duration.zero, 0)
        for seed in 0..<100 as Range<UInt64> {
            let result = scenario(seed: seed, profile, entry).run(recordsHistory: true)
            #expect(result.violations.isEmpty, "\(result.violations)")
            let (span, count) = try slowest(result, entry)
            longest = max(longest, span)
            total += count
        }
        #expect(total > 1000)
        // Somebody asked at the moment of the death, and waited for as long as there was no master.
        #expect((detection..<(detection + .milliseconds(200))).contains(longest))
    }
}
