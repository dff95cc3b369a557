// The stream of server-sent events that keeps the console's pages alive.

import Foundation
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

/// The stream: all transitions after the one that the reader saw last, then each as it comes, and the state once a
/// second.
///
/// - SeeAlso: the HTML standard, "Server-sent events".
final class EventStream: Sendable {
    /// Readers at once; more are told to come back.
    static let maxReaders = 64
    /// Between two looks for transitions.
    static let pace = Swift.Duration.milliseconds(250)
    /// Looks between two states.
    private static let looksPerState = 4
    /// Transitions in one write.
    private static let batch = 500

    private let log: TransitionLog
    private let readers = Mutex(0)

    init(log: TransitionLog) { self.log = log }

    /// Takes a reader in.
    ///
    /// - Returns: false where there are too many; else `leave` is due when it goes.
    func enter() -> Bool {
        readers.withLock { count in
            guard count < EventStream.maxReaders else { return false }
            count += 1
            return true
        }
    }

    func leave() { readers.withLock { $0 -= 1 } }

    /// Writes until the reader goes, may look no longer, or the process stops.
    ///
    /// - Parameters:
    ///   - writer: takes the bytes.
    ///   - id: of the last transition that the reader has seen.
    ///   - state: the state for this reader, nil where it may look no longer; throws where the logic does not answer.
    func run(
        _ writer: BodyWriter, after id: String?, state: @escaping @Sendable () async throws -> ByteBuffer?
    ) async throws {
        let start = log.number(of: id)
        await cancelWhenGracefulShutdown {
            do {
                // A reader that loses the connection comes back after this.
                try await writer.write(ByteBuffer(string: "retry: 1000\n\n"))
                var (look, seen) = (0, start)
                while !Task.isCancelled {
                    while true {
                        let fresh = self.log.after(seen, atMost: EventStream.batch)
                        guard let last = fresh.last else { break }
                        try await writer.write(try self.text(of: fresh))
                        seen = last.number
                    }
                    if look % EventStream.looksPerState == 0 {
                        do {
                            guard let state = try await state() else { return }
                            var event = ByteBuffer(string: "event: state\ndata: ")
                            event.writeImmutableBuffer(state)
                            event.writeString("\n\n")
                            try await writer.write(event)
                        } catch is APIError {
                            // The tracker's logic does not answer; the connection lives.
                            try await writer.write(ByteBuffer(string: ": no answer\n\n"))
                        }
                    }
                    look += 1
                    try await Task.sleep(for: EventStream.pace)
                }
            } catch {
                // The reader has gone, or the process stops.
            }
        }
    }

    private func text(of transitions: [Transition]) throws -> ByteBuffer {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        var text = ByteBuffer()
        for transition in transitions {
            text.writeString("event: transition\nid: \(log.id(of: transition))\ndata: ")
            text.writeBytes(try encoder.encode(TransitionDocument(transition)))
            text.writeString("\n\n")
        }
        return text
    }
}
