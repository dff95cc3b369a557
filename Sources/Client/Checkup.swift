// All of a cluster's trackers looked at together, for `tracker doctor`.

/// All of a cluster's trackers looked at together, for `tracker doctor`: what the ones that were asked see, what the
/// others have told them over the bus, and what is wrong.
///
/// Pure: views go in, a picture and sentences come out.
public struct Checkup: Sendable, Equatable {
    /// One console that was asked.
    public struct Visit: Sendable {
        /// Its URL or address, as the operator gave it.
        public var console: String
        /// What its tracker sees; nil where it could not be asked.
        public var view: ClusterView?
        /// Why it could not be asked.
        public var failure: String?

        /// Takes the fields as they are.
        public init(console: String, view: ClusterView? = nil, failure: String? = nil) {
            self.console = console
            self.view = view
            self.failure = failure
        }
    }

    /// One tracker, as far as it is known.
    public struct Patient: Sendable, Equatable, Encodable {
        /// Its number.
        public var id: UInt32
        /// `newcomer`, `slave`, `candidate`, `master` or `down`.
        public var role: String
        /// Whether its OK counts.
        public var hasVote: Bool
        /// The last entry that it has applied, as it said last.
        public var commitIndex: UInt64
        /// Whether its console was asked; else this is what it told the others.
        public var wasAsked: Bool
        /// What it says of itself; nil where it has said nothing yet.
        public var report: TrackerSelfReport?
    }

    /// Something that is wrong with a tracker, or with the cluster.
    public struct Complaint: Sendable, Equatable, Encodable {
        /// Nil where it is not about one of them.
        public var tracker: UInt32?
        /// A sentence without its full stop.
        public var text: String
    }

    /// By id.
    public private(set) var patients: [Patient] = []
    /// What is wrong; nothing is named twice.
    public private(set) var complaints: [Complaint] = []

    /// Beyond this a clock is wrong rather than late.
    static let maxClockDifference = 2.0

    /// Compares what all consoles that were asked see.
    public init(_ visits: [Visit]) {
        let views = visits.compactMap(\.view)
        for view in views {
            for tracker in view.trackers { take(tracker, of: view) }
        }
        patients.sort { $0.id < $1.id }
        for visit in visits where visit.view == nil {
            complain(nil, "the console at \(visit.console) could not be asked: \(visit.failure ?? "no answer")")
        }
        for view in views {
            for finding in view.findings ?? [] { complain(view.id, finding.text) }
        }
        compareViews(views)
        for patient in patients { examine(patient) }
        compareReports()
    }

    /// Whether nothing is wrong.
    public var isWell: Bool { complaints.isEmpty }

    private mutating func complain(_ tracker: UInt32?, _ text: String) {
        let complaint = Complaint(tracker: tracker, text: text)
        if !complaints.contains(complaint) { complaints.append(complaint) }
    }

    private mutating func take(_ tracker: ClusterView.Tracker, of view: ClusterView) {
        let patient = Patient(
            id: tracker.id, role: tracker.role, hasVote: tracker.hasVote, commitIndex: tracker.commitIndex,
            wasAsked: tracker.isThis, report: tracker.report)
        guard let place = patients.firstIndex(where: { $0.id == tracker.id }) else { return patients.append(patient) }
        let known = patients[place]
        if known.wasAsked {
            // Its own word counts, but by its own clock nobody can tell that it is wrong.
            if known.report?.clockDifferenceSeconds == 0, let difference = tracker.report?.clockDifferenceSeconds {
                patients[place].report?.clockDifferenceSeconds = difference
            }
        } else if tracker.isThis || known.role == "down" {
            let difference = known.report?.clockDifferenceSeconds
            patients[place] = patient
            if tracker.isThis, let difference { patients[place].report?.clockDifferenceSeconds = difference }
        }
    }

    /// Who does not hear whom.
    private mutating func compareViews(_ views: [ClusterView]) {
        for view in views where view.mode != "alone" {
            for other in views where other.id != view.id {
                let seen = view.trackers.first { $0.id == other.id }
                if seen == nil || seen?.role == "down" {
                    complain(view.id, "it does not hear tracker \(other.id), which answers on its console")
                }
            }
            for id in view.voters where !view.trackers.contains(where: { $0.id == id }) {
                complain(view.id, "it has not heard tracker \(id), which has a vote, since it found the bus")
            }
        }
        let masters = Set(views.map(\.master)).subtracting([0])
        if masters.count > 1 {
            complain(nil, "there is more than one master: \(masters.sorted().map(String.init).joined(separator: ", "))")
        }
    }

    private mutating func examine(_ patient: Patient) {
        if patient.role == "down" { complain(patient.id, "it is down") }
        guard let report = patient.report else { return }
        // Who was asked has said so already.
        if !patient.wasAsked, !report.problem.isEmpty { complain(patient.id, report.problem) }
        if !patient.wasAsked, report.disk != "works" { complain(patient.id, "its disk: \(report.disk)") }
        if abs(report.clockDifferenceSeconds) > Checkup.maxClockDifference {
            let seconds = (report.clockDifferenceSeconds * 10).rounded() / 10
            complain(patient.id, "its clock differs by \(seconds) s; run chrony or another NTP client")
        }
        if report.receiveBufferBytes < report.wantedReceiveBufferBytes {
            complain(
                patient.id,
                "its receive buffer has \(report.receiveBufferBytes >> 10) KiB of "
                    + "\(report.wantedReceiveBufferBytes >> 10); raise net.core.rmem_max, or let it have CAP_NET_ADMIN")
        }
        if !patient.wasAsked, report.lostDatagrams > 0 {
            complain(
                patient.id,
                "the kernel dropped \(report.lostDatagrams) datagrams in the last five minutes: its receive buffer was "
                    + "full")
        }
        if report.maxFiles > 0, report.openFiles * 5 > report.maxFiles * 4 {
            complain(patient.id, "it has \(report.openFiles) files open of \(report.maxFiles); raise LimitNOFILE")
        }
    }

    /// What should be alike.
    private mutating func compareReports() {
        let reports = patients.filter { $0.role != "down" }.compactMap { patient in
            patient.report.map { (patient.id, $0) }
        }
        for (name, value) in [
            ("release", { (report: TrackerSelfReport) in report.version }), ("durability", { $0.durability }),
        ] {
            let values = Set(reports.map { value($0.1) })
            guard values.count > 1 else { continue }
            let each = reports.map { "\(value($0.1)) at tracker \($0.0)" }
            complain(nil, "not the same \(name): \(each.joined(separator: ", "))")
        }
    }
}
