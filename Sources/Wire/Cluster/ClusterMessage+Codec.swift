// The bytes of cluster messages.

import Primitives

/// Bytes that are no cluster message of this version.
public enum ClusterMessageError: Error, Hashable, CustomStringConvertible {
    /// It does not begin like one.
    case notAMessage
    /// It comes from a program that speaks another version; nil where it is too short to say who that is.
    case otherVersion(UInt8, of: Life?)
    /// It is cut, it goes on after its end, or it says what no tracker says.
    case damaged

    /// A sentence for an operator, with the way out where there is one.
    public var description: String {
        switch self {
        case .notAMessage: "these bytes are no cluster message: something else uses this bus"
        case .otherVersion(let version, let sender):
            "\(sender.map { "tracker \($0.id)" } ?? "a tracker") speaks version \(version) of the cluster protocol, "
                + "this one version \(ClusterMessage.version); run the same release on all trackers of a cluster"
        case .damaged: "a cluster message is damaged"
        }
    }
}

/// The bytes of cluster messages.
///
///     0   magic "SKM", version
///     4   sender: id, incarnation
///     16  destination: 0 for all; or 1, id, incarnation
///     ..  epoch: round, id
///     ..  kind, body
///
/// Magic, version and sender have these places in every version, so that a tracker can say who speaks another one. A
/// message holds entries and chunks of the state as they are: a new version of either needs a new version of the
/// messages, too.
///
/// Numbers are big-endian. Each message has one spelling, and no other is read: flags are 0 or 1, kinds are known, and
/// nothing follows the body. The bus has checked that the bytes are authentic; reading strangers' bytes never traps.
/// `MessageReader.swift` holds the parts.
extension ClusterMessage {
    /// The version of the messages that this program speaks; bytes of another one are not read.
    public static let version: UInt8 = 3
    static let magic = Array("SKM".utf8)

    /// What one message may hold.
    ///
    /// What a stranger can make long (datagrams, passkeys) is bounded by its 16-bit length alone, so that no request of
    /// his spoils the message that it travels in.
    public enum Limits {
        /// A million updates with their tickets fit.
        static let entryByteCount = 128 << 20
        /// One shard of the largest swarm table, cut into 16, fits.
        public static let chunkByteCount = 512 << 20
        /// The most entries of one `entries` message, whose count has 16 bits.
        public static let entries = Int(UInt16.max)
        /// The most requests of one `forward`, and answers of one `answered`, whose count has 16 bits.
        public static let requests = Int(UInt16.max)
        /// What a client may ask for at once (BEP 15).
        public static let scrapeHashes = ScrapeRequest.maxInfoHashes
        /// Blank lives in a `hello`: as many trackers as one entry may hold requests of.
        public static let lives = Tickets.maxLives
    }

    /// Appends the bytes of the message; a body beyond `Limits` traps.
    public func encode(into bytes: inout [UInt8]) {
        bytes.append(contentsOf: ClusterMessage.magic)
        bytes.append(ClusterMessage.version)
        bytes.append(sender)
        switch destination {
        case .all: bytes.append(0)
        case .one(let life):
            bytes.append(1)
            bytes.append(life)
        }
        bytes.append(epoch)
        bytes.append(body.kind.rawValue)
        body.encode(into: &bytes)
    }

    /// Reads one message.
    ///
    /// - Parameter bytes: all of them are the message.
    /// - Throws: `ClusterMessageError`; never traps, whatever the bytes are.
    public init(_ bytes: [UInt8]) throws(ClusterMessageError) {
        guard bytes.starts(with: ClusterMessage.magic) else { throw .notAMessage }
        var reader = MessageReader(bytes, from: ClusterMessage.magic.count)
        let version = try reader.u8()
        guard version == ClusterMessage.version else { throw .otherVersion(version, of: try? reader.life()) }
        sender = try reader.life()
        destination = try reader.flag() ? .one(try reader.life()) : .all
        epoch = try reader.epoch()
        guard let kind = Kind(rawValue: try reader.u8()) else { throw .damaged }
        body = try Body(kind, &reader)
        try reader.end()
    }

    /// Who has sent an encoded message, without reading the rest of it.
    ///
    /// - Throws: `ClusterMessageError`; never traps, whatever the bytes are.
    public static func sender(of bytes: [UInt8]) throws(ClusterMessageError) -> Life {
        guard bytes.starts(with: ClusterMessage.magic) else { throw .notAMessage }
        var reader = MessageReader(bytes, from: ClusterMessage.magic.count)
        let version = try reader.u8()
        guard version == ClusterMessage.version else { throw .otherVersion(version, of: try? reader.life()) }
        return try reader.life()
    }
}

extension ClusterMessage {
    enum Kind: UInt8, CaseIterable {
        case keepalive = 1
        case suspect = 2
        case election = 3
        case answer = 4
        case coordinator = 5
        case prepare = 6
        case ok = 7
        case error = 8
        case commit = 9
        case confirm = 10
        case confirmed = 11
        case fetch = 12
        case entries = 13
        case hello = 14
        case welcome = 15
        case refused = 16
        case fetchChunk = 17
        case chunk = 18
        case welcomeDone = 19
        case forward = 20
        case answered = 21
        case handover = 22
        case leave = 23
        case report = 24
        case order = 25
        case ordered = 26
        case stop = 27
    }
}

extension ClusterMessage.Body {
    var kind: ClusterMessage.Kind {
        switch self {
        case .keepalive: .keepalive
        case .suspect: .suspect
        case .election: .election
        case .answer: .answer
        case .coordinator: .coordinator
        case .prepare: .prepare
        case .ok: .ok
        case .error: .error
        case .commit: .commit
        case .confirm: .confirm
        case .confirmed: .confirmed
        case .fetch: .fetch
        case .entries: .entries
        case .hello: .hello
        case .welcome: .welcome
        case .refused: .refused
        case .fetchChunk: .fetchChunk
        case .chunk: .chunk
        case .welcomeDone: .welcomeDone
        case .forward: .forward
        case .answered: .answered
        case .handover: .handover
        case .leave: .leave
        case .report: .report
        case .order: .order
        case .ordered: .ordered
        case .stop: .stop
        }
    }

    fileprivate func encode(into bytes: inout [UInt8]) {
        switch self {
        case .keepalive(let keepalive): keepalive.encode(into: &bytes)
        case .suspect(let position), .coordinator(let position), .commit(let position), .fetch(let position):
            bytes.append(position)
        case .election, .handover, .leave, .stop: break
        case .answer(let answer):
            bytes.append(answer.position)
            bytes.append(answer.pending)
            bytes.append(answer.leftInOrder)
        case .prepare(let entry, let position):
            bytes.append(position)
            bytes.append(entry)
        case .ok(let ballot): bytes.append(ballot)
        case .error(let ballot, let reason):
            bytes.append(ballot)
            bytes.append(reason.rawValue)
        case .confirm(let round), .confirmed(let round): bytes.append(bigEndian: round)
        case .entries(let entries, let position):
            bytes.append(position)
            bytes.append(count: entries.count, atMost: ClusterMessage.Limits.entries)
            for entry in entries { bytes.append(entry) }
        case .hello(let hello): hello.encode(into: &bytes)
        case .welcome(let welcome): welcome.encode(into: &bytes)
        case .refused(let refusal): bytes.append(refusal.rawValue)
        case .fetchChunk(let number): bytes.append(bigEndian: number)
        case .chunk(let number, let index, let chunk):
            bytes.append(bigEndian: number)
            bytes.append(bigEndian: index)
            bytes.append(long: chunk, atMost: ClusterMessage.Limits.chunkByteCount)
        case .welcomeDone(let position, let digest):
            bytes.append(position)
            bytes.append(bigEndian: digest)
        case .forward(let requests, let floor, let index):
            bytes.append(bigEndian: floor)
            bytes.append(bigEndian: index)
            bytes.append(count: requests.count, atMost: ClusterMessage.Limits.requests)
            for request in requests { request.encode(into: &bytes) }
        case .answered(let answers):
            bytes.append(count: answers.count, atMost: ClusterMessage.Limits.requests)
            for answer in answers { answer.encode(into: &bytes) }
        case .report(let report): report.encode(into: &bytes)
        case .order(let number, let order):
            bytes.append(bigEndian: number)
            order.encode(into: &bytes)
        case .ordered(let number, let outcome):
            bytes.append(bigEndian: number)
            outcome.encode(into: &bytes)
        }
    }

    fileprivate init(_ kind: ClusterMessage.Kind, _ reader: inout MessageReader) throws(ClusterMessageError) {
        switch kind {
        case .keepalive: self = .keepalive(try Keepalive(&reader))
        case .suspect: self = .suspect(at: try reader.position())
        case .election: self = .election
        case .answer:
            self = .answer(
                VoterAnswer(
                    position: try reader.position(), pending: try reader.entryIfAny(), leftInOrder: try reader.flag()))
        case .coordinator: self = .coordinator(at: try reader.position())
        case .prepare:
            let position = try reader.position()
            self = .prepare(entry: try reader.entry(), at: position)
        case .ok: self = .ok(try reader.ballot())
        case .error: self = .error(try reader.ballot(), try reader.choice())
        case .commit: self = .commit(at: try reader.position())
        case .confirm: self = .confirm(round: try reader.u64())
        case .confirmed: self = .confirmed(round: try reader.u64())
        case .fetch: self = .fetch(after: try reader.position())
        case .entries:
            let position = try reader.position()
            var entries: [Entry] = []
            for _ in 0..<(try reader.u16()) { entries.append(try reader.entry()) }
            self = .entries(entries, at: position)
        case .hello: self = .hello(try Hello(&reader))
        case .welcome: self = .welcome(try Welcome(&reader))
        case .refused: self = .refused(try reader.choice())
        case .fetchChunk: self = .fetchChunk(try reader.u32())
        case .chunk:
            self = .chunk(
                number: try reader.u32(), index: try reader.index(),
                bytes: try reader.long(atMost: ClusterMessage.Limits.chunkByteCount))
        case .welcomeDone: self = .welcomeDone(at: try reader.position(), digest: try reader.u64())
        case .forward:
            let (floor, index) = (try reader.index(), try reader.index())
            var requests: [ForwardedRequest] = []
            for _ in 0..<(try reader.u16()) { requests.append(try ForwardedRequest(&reader)) }
            self = .forward(requests, floor: floor, index: index)
        case .answered:
            var answers: [AnsweredRequest] = []
            for _ in 0..<(try reader.u16()) { answers.append(try AnsweredRequest(&reader)) }
            self = .answered(answers)
        case .handover: self = .handover
        case .leave: self = .leave
        case .stop: self = .stop
        case .report: self = .report(try TrackerReport(&reader))
        case .order: self = .order(number: try reader.u64(), try ClusterOrder(&reader))
        case .ordered: self = .ordered(number: try reader.u64(), try OrderOutcome(&reader))
        }
    }
}
