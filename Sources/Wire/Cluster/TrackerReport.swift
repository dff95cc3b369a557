// What a tracker tells the others of itself once a keepalive, so that any of them can tell an operator about all.

import Primitives

/// What a tracker tells the others of itself once a keepalive, so that any of them can tell an operator about all.
///
/// Figures are those of the last ten seconds or so; 0 stands for "none in that time" where there is no other word.
///
/// Nothing depends on a report: it is in no log, is not sent again when it is lost, and may be an interval old. The
/// reader bounds all lengths and numbers in it, so that code that adds them up or shows them need not check again.
public struct TrackerReport: Sendable, Hashable {
    /// What one report may say: greater numbers are cut when it is written, and refused when it is read.
    public enum Limits {
        /// As many as there may be other trackers.
        public static let echoes = 63
        /// As many as there may be other trackers.
        public static let heard = 63
        /// Microseconds: an hour, for who waits longer has given up.
        public static let span: UInt32 = 3_600_000_000
        /// Requests a second, files, bytes of a buffer.
        public static let count: UInt32 = 1 << 31
        /// Milliseconds since 1970: the year 10889; and totals: what JSON can say.
        public static let total: UInt64 = 1 << 48
    }

    /// Of the program.
    public var version = ShortText.none
    /// The name of the machine.
    public var host = ShortText.none
    /// Where clients find it: the announce URL that its operator tells, else where it listens.
    public var clients = ShortText.none
    /// Where its console listens; empty for nowhere.
    public var console = ShortText.none
    /// Why it answers nobody; empty where it does.
    public var problem = ShortText.none
    /// What a power cut or a crash may take back of what the tracker answered.
    public var durability = Durability.disk
    /// Whether the tracker's record can be written.
    public var disk = Disk.works

    /// Announces that it answered in a second, whoever is master.
    public var announceRate: UInt32 = 0
    /// From the request to its answer, in microseconds.
    public var answers = Latency()
    /// From the proposal of an entry, or its coming, until it is known to be decided.
    public var commits = Latency()
    /// From the order to write until it is durable.
    public var writes = Latency()
    /// From here to another tracker and back.
    public var roundTrips = Latency()

    /// File descriptors that the process has open.
    public var openFiles: UInt32 = 0
    /// How many it may have open (`RLIMIT_NOFILE`).
    public var maxFiles: UInt32 = 0
    /// Bytes of the smallest receive buffer of its UDP sockets, as the kernel grants it.
    public var receiveBuffer: UInt32 = 0
    /// Bytes of receive buffer that were asked for.
    public var wantedReceiveBuffer: UInt32 = 0
    /// Datagrams of clients that the kernel dropped in the last five minutes.
    public var lostDatagrams: UInt64 = 0

    /// The sender's wall clock when it sent this, in milliseconds since 1970.
    public var wallTime: UInt64 = 0
    /// The sender's monotonic clock then, in nanoseconds; for the echo alone.
    public var stamp: UInt64 = 0
    /// The last reports that it has heard of others, so that each learns how long the way there and back is.
    public var echoes: [Echo] = []
    /// Whom the sender hears, and whom it has heard, in rising order of id: so any tracker can tell who hears whom.
    public var heard: [Heard] = []

    /// What survives: the setting that was chosen when the tracker was started.
    public enum Durability: UInt8, Sendable, Hashable, CaseIterable {
        /// What was answered survives a power cut.
        case disk = 1
        /// What was answered survives a crash of the tracker.
        case process = 2
    }

    /// How the last write to the record went.
    public enum Disk: UInt8, Sendable, Hashable, CaseIterable {
        case works = 0
        case full = 1
        case locked = 2
        case readOnly = 3
        case broken = 4
    }

    /// How long something takes, in microseconds; zeros where there was none.
    public struct Latency: Sendable, Hashable {
        /// Half were faster.
        public var median: UInt32 = 0
        /// One of a hundred was slower.
        public var p99: UInt32 = 0

        /// None in this time.
        public init() {}

        /// Takes both figures, each cut at `Limits.span`.
        public init(median: UInt32, p99: UInt32) {
            self.median = min(median, Limits.span)
            self.p99 = min(p99, Limits.span)
        }
    }

    /// A report of another tracker sent back to it, so that it can tell how long the way there and back takes.
    public struct Echo: Sendable, Hashable {
        /// Whose report it was.
        public var incarnation: UInt64
        /// What it said.
        public var stamp: UInt64
        /// How long ago it came, in microseconds.
        public var held: UInt32

        /// Takes the fields; `held` is cut at `Limits.span`.
        public init(incarnation: UInt64, stamp: UInt64, held: UInt32) {
            self.incarnation = incarnation
            self.stamp = stamp
            self.held = min(held, Limits.span)
        }
    }

    /// Another tracker as the sender hears it.
    public struct Heard: Sendable, Hashable {
        /// Whom it hears; never 0.
        public var id: UInt32
        /// Seconds since its last message, rounded up; 65,535 for that and all that is longer.
        public var silence: UInt16
        /// Whether the sender takes it for up.
        public var isUp: Bool

        /// Takes the fields as they are.
        public init(id: UInt32, silence: UInt16, isUp: Bool) {
            self.id = id
            self.silence = silence
            self.isUp = isUp
        }
    }

    /// A report that says nothing yet.
    public init() {}
}

// MARK: - Bytes

extension TrackerReport {
    func encode(into bytes: inout [UInt8]) {
        for text in [version, host, clients, console, problem] { text.encode(into: &bytes) }
        bytes.append(durability.rawValue)
        bytes.append(disk.rawValue)
        bytes.append(bigEndian: min(announceRate, Limits.count))
        for latency in [answers, commits, writes, roundTrips] {
            bytes.append(bigEndian: min(latency.median, Limits.span))
            bytes.append(bigEndian: min(latency.p99, Limits.span))
        }
        for count in [openFiles, maxFiles, receiveBuffer, wantedReceiveBuffer] {
            bytes.append(bigEndian: min(count, Limits.count))
        }
        bytes.append(bigEndian: min(lostDatagrams, Limits.total))
        bytes.append(bigEndian: min(wallTime, Limits.total))
        bytes.append(bigEndian: stamp)
        bytes.append(shortCount: echoes.count, atMost: Limits.echoes)
        for echo in echoes {
            bytes.append(bigEndian: echo.incarnation)
            bytes.append(bigEndian: echo.stamp)
            bytes.append(bigEndian: min(echo.held, Limits.span))
        }
        bytes.append(shortCount: heard.count, atMost: Limits.heard)
        for other in heard {
            bytes.append(bigEndian: other.id)
            bytes.append(bigEndian: other.silence)
            bytes.append(other.isUp)
        }
    }

    init(_ reader: inout MessageReader) throws(ClusterMessageError) {
        version = try ShortText(&reader)
        host = try ShortText(&reader)
        clients = try ShortText(&reader)
        console = try ShortText(&reader)
        problem = try ShortText(&reader)
        durability = try reader.choice()
        disk = try reader.choice()
        announceRate = try reader.u32(atMost: Limits.count)
        answers = try Latency(&reader)
        commits = try Latency(&reader)
        writes = try Latency(&reader)
        roundTrips = try Latency(&reader)
        openFiles = try reader.u32(atMost: Limits.count)
        maxFiles = try reader.u32(atMost: Limits.count)
        receiveBuffer = try reader.u32(atMost: Limits.count)
        wantedReceiveBuffer = try reader.u32(atMost: Limits.count)
        lostDatagrams = try reader.u64(atMost: Limits.total)
        wallTime = try reader.u64(atMost: Limits.total)
        stamp = try reader.u64()
        for _ in 0..<(try reader.count(atMost: Limits.echoes)) {
            echoes.append(
                Echo(
                    incarnation: try reader.u64(), stamp: try reader.u64(),
                    held: try reader.u32(atMost: Limits.span)))
        }
        for _ in 0..<(try reader.count(atMost: Limits.heard)) {
            let other = Heard(id: try reader.u32(), silence: try reader.u16(), isUp: try reader.flag())
            // Each tracker once, and none without a number.
            guard other.id > heard.last?.id ?? 0 else { throw .damaged }
            heard.append(other)
        }
    }
}

extension TrackerReport.Latency {
    fileprivate init(_ reader: inout MessageReader) throws(ClusterMessageError) {
        median = try reader.u32(atMost: TrackerReport.Limits.span)
        p99 = try reader.u32(atMost: TrackerReport.Limits.span)
    }
}

extension MessageReader {
    fileprivate mutating func u32(atMost limit: UInt32) throws(ClusterMessageError) -> UInt32 {
        let number = try u32()
        guard number <= limit else { throw .damaged }
        return number
    }

    fileprivate mutating func u64(atMost limit: UInt64) throws(ClusterMessageError) -> UInt64 {
        let number = try u64()
        guard number <= limit else { throw .damaged }
        return number
    }
}
