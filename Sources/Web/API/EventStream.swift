// The stream of server-sent events that keeps the console's pages alive.

import Foundation
import HTTPTypes
import NIOCore
import Primitives
import ServiceLifecycle
import Synchronization

/// The state as JSON, made at most once a second for all who read it.
actor StateBoard {
    /// How old it may be.
    static let age = Swift.Duration.milliseconds(950)

    private let make: @Sendable () async throws -> ByteBuffer
    private var latest: (bytes: ByteBuffer, at: ContinuousClock.Instant)?
    private var making: Task<ByteBuffer, any Error>?

    init(make: @escaping @Sendable () async throws -> ByteBuffer) { self.make = make }

    /// - Throws: where the tracker's logic does not answer.
    func current() async throws -> ByteBuffer {
        if let latest, latest.at.duration(to: .now) < StateBoard.age { return latest.bytes }
        if let making { return try await making.value }
        let task = Task { try await make() }
        making = task
        defer { making = nil }
        let bytes = try await task.value
        latest = (bytes, .now)
        return bytes
    }
}

/// What the readers of the stream are told at one look: made once, and the bytes shared by all of them.
private struct Look: Sendable {
    enum State: Sendable {
        /// The same for all; each reader's log-in goes before it.
        case told(ByteBuffer)
        /// The tracker's logic does not answer.
        case silent
    }

    /// The number of the last transition before `transitions`.
    var after: UInt64
    /// The number of the last one in `transitions`.
    var last: UInt64
    /// As events; empty where nothing has happened.
    var transitions = ByteBuffer()
    /// Nil between two states.
    var state: State?
    /// States so far.
    var stateCount: Int
}

/// The stream: all transitions after the one that the reader saw last, then each as it comes, and the state once a
/// second.
///
/// One task looks for all readers: what a second costs hardly depends on how many there are. It ends with the last
/// reader. A reader that is slow misses states, and never a transition.
///
/// - SeeAlso: the HTML standard, "Server-sent events".
final class EventStream: Sendable {
    /// Readers at once; more are told to come back.
    static let maxReaders = 64
    /// Of them, those of one account: so that nobody who may look keeps the others from it.
    static let maxReadersPerAccount = 8
    /// Of them, those who came without an account: by a token of a file, or from this machine.
    static let maxReadersWithoutAccount = 32
    /// Between two looks for transitions.
    static let pace = Swift.Duration.milliseconds(250)
    /// Looks between two states.
    private static let looksPerState = 4
    /// Transitions in one write.
    private static let batch = 500

    /// A reader's place, given back when nobody holds it any more.
    final class Place: Sendable {
        fileprivate let number: UInt64
        fileprivate let looks: AsyncStream<Look>
        private let stream: EventStream

        fileprivate init(_ number: UInt64, _ looks: AsyncStream<Look>, in stream: EventStream) {
            self.number = number
            self.looks = looks
            self.stream = stream
        }

        deinit { stream.leave(number) }
    }

    private struct Reader {
        /// Nil for one without.
        var account: String?
        var looks: AsyncStream<Look>.Continuation
    }

    private struct State {
        var readers: [UInt64: Reader] = [:]
        var lastPlace: UInt64 = 0
        var isLooking = false
    }

    private let log: TransitionLog
    private let board: StateBoard
    private let state = Mutex(State())

    /// - Parameters:
    ///   - log: what has happened.
    ///   - board: how things are.
    init(log: TransitionLog, board: StateBoard) {
        self.log = log
        self.board = board
    }

    /// Takes a reader in.
    ///
    /// - Throws: `APIError`: 429 where its account has too many, 503 where there are too many at all.
    func enter(_ caller: Caller) throws(APIError) -> Place {
        let account = caller.session == nil ? nil : caller.name
        // Before the reader looks for what was: nothing falls between the two.
        let start = log.last
        let (looks, continuation) = AsyncStream.makeStream(of: Look.self, bufferingPolicy: .bufferingNewest(1))
        let admission = state.withLock { state -> Result<(number: UInt64, isFirst: Bool), APIError> in
            let own = state.readers.values.count { $0.account == account }
            let limit = account == nil ? Self.maxReadersWithoutAccount : Self.maxReadersPerAccount
            guard own < limit else { return .failure(Self.tooManyOfOne(caller, limit)) }
            guard state.readers.count < Self.maxReaders else { return .failure(Self.tooMany) }
            state.lastPlace += 1
            state.readers[state.lastPlace] = Reader(account: account, looks: continuation)
            defer { state.isLooking = true }
            return .success((state.lastPlace, !state.isLooking))
        }
        let (number, isFirst) = try admission.get()
        if isFirst { Task { await look(after: start) } }
        return Place(number, looks, in: self)
    }

    private static func tooManyOfOne(_ caller: Caller, _ limit: Int) -> APIError {
        APIError(
            .tooManyRequests,
            "\(caller.name) reads \(limit) streams of events already; close a page, or stop a program, that reads one",
            retryAfter: 10)
    }

    private static var tooMany: APIError {
        APIError(
            .serviceUnavailable,
            "\(maxReaders) read the stream of events already; try again in a moment, or ask another tracker",
            retryAfter: 10)
    }

    private func leave(_ place: UInt64) { state.withLock { $0.readers[place] = nil } }

    // MARK: - For all readers

    /// Looks for all readers, until there are none.
    private func look(after start: UInt64) async {
        var (looks, seen) = (0, start)
        while true {
            try? await Task.sleep(for: EventStream.pace)
            let hasReaders = state.withLock { state in
                state.isLooking = !state.readers.isEmpty
                return state.isLooking
            }
            guard hasReaders else { return }
            looks += 1
            var look = Look(after: seen, last: seen, stateCount: looks / EventStream.looksPerState)
            let fresh = log.after(seen, atMost: EventStream.batch)
            if let last = fresh.last {
                look.last = last.number
                look.transitions = text(of: fresh)
                seen = last.number
            }
            if looks % EventStream.looksPerState == 0 { look.state = await stateNow() }
            guard look.last > look.after || look.state != nil else { continue }
            for reader in state.withLock({ Array($0.readers.values) }) { reader.looks.yield(look) }
        }
    }

    private func stateNow() async -> Look.State {
        guard let bytes = try? await board.current() else { return .silent }
        return .told(bytes)
    }

    private func text(of transitions: [Transition]) -> ByteBuffer {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        var text = ByteBuffer()
        for transition in transitions {
            guard let data = try? encoder.encode(TransitionDocument(transition)) else {
                preconditionFailure("texts and whole numbers can be written as JSON")
            }
            text.writeString("event: transition\nid: \(log.id(of: transition))\ndata: ")
            text.writeBytes(data)
            text.writeString("\n\n")
        }
        return text
    }

    // MARK: - For one reader

    /// Writes until the reader goes, may look no longer, or the process stops.
    ///
    /// - Parameters:
    ///   - place: the reader's.
    ///   - writer: takes the bytes.
    ///   - id: of the last transition that the reader has seen.
    ///   - logIn: what goes before the state for this reader; nil where it may look no longer.
    func run(
        _ place: Place, _ writer: BodyWriter, after id: String?,
        logIn: @escaping @Sendable () async -> ByteBuffer?
    ) async {
        let start = log.number(of: id)
        await cancelWhenGracefulShutdown {
            do {
                // A reader that loses the connection comes back after this.
                try await writer.write(ByteBuffer(string: "retry: 1000\n\n"))
                var seen = try await self.catchUp(writer, after: start)
                guard let first = await self.event(of: await self.stateNow(), logIn) else { return }
                try await writer.write(first)
                var stateCount = Int.max
                for await look in place.looks {
                    var bytes = ByteBuffer()
                    if look.after == seen {
                        bytes = look.transitions
                        seen = look.last
                    } else if look.last > seen {
                        // It has missed a look, or came between two.
                        seen = try await self.catchUp(writer, after: seen)
                    }
                    // One that it has missed is due, and with it whether it may still look.
                    let isDue = look.state != nil || look.stateCount > stateCount
                    stateCount = look.stateCount
                    if isDue {
                        var state = look.state
                        if state == nil { state = await self.stateNow() }
                        guard let state, var event = await self.event(of: state, logIn) else { return }
                        bytes.writeBuffer(&event)
                    }
                    if bytes.readableBytes > 0 { try await writer.write(bytes) }
                }
            } catch {
                // The reader has gone, or the process stops.
            }
        }
    }

    /// Writes all transitions after one.
    ///
    /// - Returns: the number of the last one.
    private func catchUp(_ writer: BodyWriter, after start: UInt64) async throws -> UInt64 {
        var seen = start
        while true {
            let fresh = log.after(seen, atMost: EventStream.batch)
            guard let last = fresh.last else { return seen }
            try await writer.write(text(of: fresh))
            seen = last.number
        }
    }

    private func event(of state: Look.State, _ logIn: @Sendable () async -> ByteBuffer?) async -> ByteBuffer? {
        // Asked in any case: the node's silence keeps nobody in.
        guard var logIn = await logIn() else { return nil }
        // The connection lives, though the tracker's logic does not answer.
        guard case .told(var rest) = state else { return ByteBuffer(string: ": no answer\n\n") }
        var event = ByteBuffer(string: "event: state\ndata: ")
        event.writeBuffer(&logIn)
        event.writeBuffer(&rest)
        event.writeString("\n\n")
        return event
    }
}
