// Stress beyond what any seed draws: for looking where a sweep does not come.

import Primitives

/// Trouble beyond what a seed draws.
///
/// Some are harsher than brokers and disks are: `slow`, `duplicates`, `lossy`, `deaths` and `disks` have twenty
/// clients, a minute of faults and one of them every few seconds. The others bring together what seeds draw apart: each
/// is the ground on which mistakes of one kind show themselves (`Stress+Grounds.swift`).
public enum Stress: String, Sendable, Hashable, CaseIterable {
    /// Each message is under way for up to 300 ms.
    case slow
    /// Many messages come twice, or seconds late: perhaps to a later life of their receiver.
    case duplicates
    /// Messages are lost, and overtake each other; two trackers may be down at once.
    case lossy
    /// The opposite: nothing goes wrong but that the master dies, again and again.
    case deaths
    /// One write in four fails, trackers lose their disks, and those that lag behind have to take the whole state.
    case disks
    /// Disks are damaged, of three one at a time, of five two; the rest stays as the seed has drawn it.
    case damaged
    /// Masters die with entries half-way, one after another, are soon back, and disks refuse.
    case crashes
    /// Each cluster is once in two, and more than once; clients come and go.
    case partitions
    /// One or two trackers: who is left decides alone, and dies as it does.
    case pairs
    /// Trackers lose their disks, transfers take their time, writes fail, and old messages come again.
    case amnesia
    /// Disks refuse, votes come late or twice, and trackers begin anew in between.
    case refusals
    /// Snapshots all the time, on disks that fail.
    case snapshots
    /// Orderly stops and deaths, as many as like at one time, and slow disks on the way back.
    case stops
    /// Members come and go, by command, while trackers die.
    case members
    /// Somebody asks for counts all the time, also over HTTP, and masters do not notice that they are deposed.
    case scrapes
    /// Requests to a multicast group, in which trackers hear each other late.
    case groups
    /// Masters die and are handed their role back, and what trackers say overtakes itself.
    case overtakings
    /// Little room for anything, little asked for at a time, and many in one swarm.
    case crowds
    /// Rules, registrations and what people keep at consoles change all the time.
    case rules
    /// What hits a tracker hits it twice, and disks refuse at bad moments.
    case conjunctions
    /// Twenty minutes, in which intervals, expiry, snapshots and trims come round many times.
    case hours
    /// Trackers that were told other settings than the others, among such as tell each other how they fare.
    case misconfigured
    /// Nothing goes wrong but what shows who is who: nobody has a number; members come and go; whoever fetches the
    /// state is left alone; some are stopped, or break, also while nobody has a bus.
    case beginnings
    /// A bus that is well but for a single message now and then, which is lost, or comes once more much later.
    case slips
    /// Nothing goes wrong but that the master dies, or is stopped, when whoever is preferred lacks the last entries.
    case laggards
    /// Trackers die and are cut off, and nobody says anew for long what they may have lost.
    case silence

    /// The stress of this name; nil where there is none.
    ///
    /// Not `init(rawValue:)`: with more than sixteen cases that is a hash table, which needs chance of the system, and
    /// the module for browsers has none.
    public static func named(_ name: String) -> Stress? {
        allCases.first { $0.rawValue.utf8.elementsEqual(name.utf8) }
    }
}

extension ScenarioOptions {
    /// Takes the place of what the seed has drawn for clients, faults and bus; the rest stays.
    public mutating func harden(_ stress: Stress) {
        switch stress {
        case .slow, .duplicates, .lossy, .deaths, .disks: overdo(stress)
        case .damaged:
            faults.damageGap = .seconds(3)
            faults.maxOutages += 6
        case .crashes, .partitions, .pairs, .amnesia, .refusals, .snapshots, .stops, .members, .scrapes, .groups,
            .overtakings, .crowds, .rules, .conjunctions, .hours, .misconfigured, .beginnings, .slips,
            .laggards, .silence:
            lead(to: stress)
        }
    }

    /// Trouble that is far beyond what brokers and disks do.
    private mutating func overdo(_ stress: Stress) {
        clientCount = 20
        makeRoom()
        coreLength = .seconds(60)
        faults.meanGap = .seconds(3)
        faults.maxOutages = 40
        if faults.kinds.isEmpty { faults.kinds = [.crash, .pause, .partition, .deafLinks, .busLoss, .cleanStop] }
        switch stress {
        case .slow:
            bus.maxDelay = .milliseconds(300)
        case .duplicates:
            faults.meanGap = .seconds(2)
            bus.maxDelay = .milliseconds(100)
            bus.stragglerPerMille = 20
            bus.repeatPerMille = 20
        case .lossy:
            faults.maxDown = 2
            bus.maxDelay = .milliseconds(300)
            bus.lossPerMille = 30
            bus.isReordering = true
        case .deaths:
            faults = FaultOptions()
            faults.kinds = [.crash]
            faults.killsMastersOnly = true
            faults.meanGap = .seconds(12)
            faults.maxOutages = 40
            coreLength = .seconds(120)
            latecomerDelay = .zero
            maxDrift = min(maxDrift, 2000)
            (disk.failPerMille, disk.stallPerMille) = (0, 0)
            (bus.lossPerMille, bus.stragglerPerMille, bus.redeliveredPerMille) = (0, 0, 0)
            bus.maxDelay = min(bus.maxDelay, .milliseconds(50))
        case .disks:
            tailCount = 1 + tailCount % 8
            disk.failPerMille = 250
            disk.maxDelay = .milliseconds(60)
            snapshotLogByteCount = min(snapshotLogByteCount, 1000)
            snapshotAge = min(snapshotAge, .seconds(2))
            for moment in [Moment.snapshotUnderWay, .trimSubmitted, .transferEnded, .writeFailed] {
                faults.injectOneIn[moment.rawValue] = 8
            }
            for kind in [Fault.Kind.memoryLoss, .memoryLoss, .diskFailure, .busLoss, .crash] {
                faults.kinds.append(kind)
            }
        case .damaged, .crashes, .partitions, .pairs, .amnesia, .refusals, .snapshots, .stops, .members, .scrapes,
            .groups, .overtakings, .crowds, .rules, .conjunctions, .hours, .misconfigured, .beginnings, .slips,
            .laggards, .silence:
            preconditionFailure("\(stress.rawValue) is a ground of its own")
        }
    }
}
