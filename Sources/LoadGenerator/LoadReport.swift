// What a load found.

/// What a load found, for people (`description`) and for programs (`Codable`).
public struct LoadReport: Codable, Sendable, Equatable {
    /// `closed`, `open` or `fill`.
    public var mode = ""
    /// As the operator gave it.
    public var target = ""
    /// Requests in flight of a closed loop or a fill; nil for an open loop.
    public var inFlight: Int?
    /// Requests a second of an open loop; nil for others.
    public var rate: Int?
    /// Swarms that the peers are in.
    public var torrents = 0
    /// Peers in all swarms together.
    public var peers = 0
    /// Client addresses.
    public var sources = 0

    /// Announces and scrapes that left; those that only renew connection ids are not counted anywhere.
    public var sent: UInt64 = 0
    /// Of these, such as were sent again by a fill.
    public var resent: UInt64 = 0
    /// Answered as asked, whatever its flaws (`wrong`).
    public var answered: UInt64 = 0
    /// Not answered in time.
    public var lost: UInt64 = 0
    /// Open loop: were due, and could not leave before the end.
    public var unsent: UInt64 = 0
    /// Answers that came after their request had been given up as lost, or came twice.
    public var late: UInt64 = 0
    /// Error replies (action 3).
    public var errors: UInt64 = 0
    /// What the first of them said; nil where there was none.
    public var firstError: String?
    /// Replies that break the protocol.
    public var wrong = Wrong()

    /// How long was measured.
    public var seconds: Double = 0
    /// Replies of all kinds in the measured time.
    public var repliesPerSecond: Double = 0
    /// Bytes of UDP payload that came.
    public var bytesInPerSecond: Double = 0
    /// Bytes of UDP payload that were sent.
    public var bytesOutPerSecond: Double = 0
    /// From the intended departure to the arrival, in microseconds.
    public var latencyMicroseconds = Latency()
    /// Of the answers to announces, those to `stopped` among them.
    public var meanPeersPerReply: Double = 0
    /// How busy this thread was, 0…1.
    ///
    /// Near 1 in a closed loop: the tracker may be able to do more.
    public var generatorLoad: Double = 0
    /// Of warm-up and measuring together: to be divided by, for what a server spent meanwhile.
    public var answeredInAll: UInt64 = 0

    /// How long answers took, in microseconds; zeros where there were none.
    public struct Latency: Codable, Sendable, Equatable {
        /// Half were faster.
        public var p50: Double = 0
        /// One of ten was slower.
        public var p90: Double = 0
        /// One of a hundred was slower.
        public var p99: Double = 0
        /// One of a thousand was slower.
        public var p999: Double = 0
        /// The slowest.
        public var max: Double = 0

        /// No answers.
        public init() {}
    }

    /// Replies that break the protocol, by how.
    public struct Wrong: Codable, Sendable, Equatable {
        /// The action is not that of the request.
        public var action: UInt64 = 0
        /// No request had this transaction id.
        public var transaction: UInt64 = 0
        /// Not 16, 20+6n or 8+12n bytes.
        public var size: UInt64 = 0
        /// More peers than `numWant`; counted as answered, too.
        public var tooManyPeers: UInt64 = 0
        /// The announcing peer is in its own list; counted as answered, too.
        public var ownEndpoint: UInt64 = 0
        /// Sent to another address than that of the request.
        public var addressee: UInt64 = 0
        /// Not from the address that was asked.
        public var sender: UInt64 = 0

        /// Nothing is wrong.
        public init() {}

        /// All of them.
        public var total: UInt64 {
            action + transaction + size + tooManyPeers + ownEndpoint + addressee + sender
        }
    }

    /// The report of a load that has not begun.
    public init() {}

    /// Whether all requests were answered as the protocol wants it.
    public var isClean: Bool { lost == 0 && unsent == 0 && errors == 0 && wrong.total == 0 }
}

extension LoadReport: CustomStringConvertible {
    /// A table of two columns, without colour and without a line feed at its end.
    public var description: String {
        ([title, ""] + rows.map { "  " + padded($0.name, to: 16) + $0.value }).joined(separator: "\n")
    }

    private var title: String {
        let pace: String
        switch mode {
        case "open": pace = "\(grouped(rate ?? 0)) requests a second"
        case "fill": pace = "each peer once, \(grouped(inFlight ?? 0)) requests in flight"
        default: pace = "\(grouped(inFlight ?? 0)) requests in flight"
        }
        return "UDP load on \(target): \(pace), \(grouped(torrents)) torrents, \(grouped(peers)) peers, "
            + "\(grouped(sources)) client \(sources == 1 ? "address" : "addresses")"
    }

    private var rows: [(name: String, value: String)] {
        var rows = [
            ("sent", grouped(sent) + (resent > 0 ? " (\(grouped(resent)) of them again)" : "")),
            (
                "answered",
                "\(grouped(answered)) in \(decimal(seconds, 2)) s: \(decimal(repliesPerSecond, 0)) a second"
            ),
            ("lost", grouped(lost) + (late > 0 ? " (\(grouped(late)) answers came late)" : "")),
        ]
        if unsent > 0 { rows.append(("not sent", "\(grouped(unsent)): the tracker fell too far behind")) }
        rows.append(("errors", grouped(errors) + (firstError.map { ", first \"\($0)\"" } ?? "")))
        rows.append(("wrong", wrongText))
        let latency = latencyMicroseconds
        rows.append(
            (
                "latency",
                "p50 \(duration(latency.p50)), p90 \(duration(latency.p90)), p99 \(duration(latency.p99)), "
                    + "p99.9 \(duration(latency.p999)), max \(duration(latency.max))"
            ))
        rows.append(
            (
                "traffic",
                "\(decimal(bytesOutPerSecond / 1e6, 1)) MB/s there, \(decimal(bytesInPerSecond / 1e6, 1)) MB/s back"
            ))
        rows.append(("peers a reply", decimal(meanPeersPerReply, 1)))
        let hint = mode == "closed" && generatorLoad > 0.95 ? ": the tracker may be able to do more" : ""
        rows.append(("generator", "\(Int((generatorLoad * 100).rounded())) % busy\(hint)"))
        return rows
    }

    private var wrongText: String {
        let parts = [
            ("action", wrong.action), ("transaction id", wrong.transaction), ("size", wrong.size),
            ("more peers than asked for", wrong.tooManyPeers), ("the asker in its own list", wrong.ownEndpoint),
            ("to another address", wrong.addressee), ("from another address", wrong.sender),
        ].filter { $0.1 > 0 }
        guard !parts.isEmpty else { return "0" }
        return "\(grouped(wrong.total)): " + parts.map { "\($0.0) \(grouped($0.1))" }.joined(separator: ", ")
    }

    private func duration(_ microseconds: Double) -> String {
        switch microseconds {
        case ..<1_000: "\(decimal(microseconds, 0)) µs"
        case ..<1_000_000: "\(decimal(microseconds / 1_000, 2)) ms"
        default: "\(decimal(microseconds / 1_000_000, 2)) s"
        }
    }

    private func padded(_ text: String, to width: Int) -> String {
        text + String(repeating: " ", count: max(1, width - text.count))
    }
}

/// A number with so many digits after the point, rounded.
private func decimal(_ value: Double, _ digits: Int) -> String {
    guard value.isFinite, value.magnitude < 1e15 else { return "–" }
    var scale: UInt64 = 1
    for _ in 0..<digits { scale *= 10 }
    let scaled = UInt64((value.magnitude * Double(scale)).rounded())
    let sign = value < 0 && scaled > 0 ? "-" : ""
    guard digits > 0 else { return sign + grouped(scaled) }
    let fraction = String(scaled % scale)
    return "\(sign)\(grouped(scaled / scale)).\(String(repeating: "0", count: digits - fraction.count))\(fraction)"
}
