// How many trackers may become master for each thing that goes wrong.

import Primitives
import TrackerLogic

/// How many trackers may become master for each thing that goes wrong.
///
///     a fault begins ──► so many may take office ──► it ends ──► so many again ──► nothing more happens: nobody does
///
/// Whom a fault leaves without a master elects one: in quorum mode one, in survivor mode each part of what was one
/// cluster its own, down to single trackers. Where votes or words were lost in it, a master or a candidate has promised
/// an epoch that the others have not heard of; it makes them stand anew when they hear of it, once each. And in the end
/// the one that the policy prefers is handed the role.
///
/// In quorum mode two that do not hear each other may both stand, and both be elected by voters that they share, one
/// after the other. Each hears from a voter of the other's epoch, and stands anew, once (deviation E6). So each further
/// rival has two more; but while they are cut off from each other, none of them has the role a third time.
///
/// Where nothing is lost but by faults, nothing else is a reason; so every run has a bound. Where messages are lost all
/// the time, or disks refuse all the time, that itself may silence a master, but not more often than once in the
/// detection time: so it counts as a fault each time that this has gone by.
///
/// What trackers do to each other is no fault: to hand the role on, to fetch a state, to step down.
package struct ElectionBudget: Sendable {
    /// Masters for each fault.
    private let perFault: Int
    private let hasOneHistory: Bool
    private let isNoisy: Bool
    private let detectionTime: Duration
    /// When the faults that are known of end.
    private var ends: [Instant] = []
    /// When the fault that masters are counted for began, or ended.
    private var since = Instant(nanoseconds: 0)
    /// The places of those that have become master since, once for each time.
    private var masters: [Int] = []

    /// A budget for so many trackers.
    ///
    /// `hasOneHistory` is whether a majority of the members decides; `isNoisy` whether messages are lost, or writes
    /// fail, all the time.
    package init(_ configuration: ClusterConfiguration?, trackers: Int, hasOneHistory: Bool, isNoisy: Bool) {
        detectionTime = configuration?.detectionTime ?? .seconds(2)
        perFault = hasOneHistory ? 3 : trackers + 2
        self.hasOneHistory = hasOneHistory
        self.isNoisy = isNoisy
    }

    /// Something goes wrong, or the operator wishes something, until a time.
    package mutating func fault(at time: Instant, until end: Instant) {
        if end > time { ends.append(end) }
        begin(at: time)
    }

    private mutating func begin(at time: Instant) {
        since = time
        masters = []
    }

    /// The tracker at a place becomes master, and the bus is as it is then.
    ///
    /// - Returns: what is wrong with that.
    package mutating func serves(_ id: UInt32, in place: Int, on bus: SimulatedBus, at time: Instant) -> String? {
        if let end = ends.filter({ $0 <= time }).max() {
            if end > since { begin(at: end) }
            ends.removeAll { $0 <= time }
        }
        if isNoisy, time - since >= detectionTime { begin(at: time) }
        masters.append(place)
        guard areTooMany(on: bus, at: time) else { return nil }
        return "tracker \(id) is number \(masters.count) to become master since something went wrong, "
            + "\((time - since).wholeMilliseconds) ms before"
    }

    /// Whether more have become master than what went wrong, and who does not hear whom, give reason to.
    private func areTooMany(on bus: SimulatedBus, at time: Instant) -> Bool {
        guard masters.count > perFault else { return false }
        guard hasOneHistory else { return true }
        var rivals: [Int] = []
        for one in masters where !rivals.contains(one) {
            let isCutOff = masters.contains { $0 != one && bus.isCut(between: $0, and: one, now: time) }
            if isCutOff { rivals.append(one) }
        }
        guard rivals.count > 1 else { return true }
        if rivals.contains(where: { rival in masters.count { $0 == rival } > 2 }) { return true }
        return masters.count > perFault + 2 * (rivals.count - 1)
    }
}
