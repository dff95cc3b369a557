// One client of the embedded broker.

import Primitives
import Wire

/// One client of the embedded broker, as the broker sees it.
///
///     ┌─────────┐ CONNECT ┌───────────┐ DISCONNECT, or anything that is out of place ┌──────┐
///     │ unknown ├────────►│ connected ├─────────────────────────────────────────────►│ over │
///     └─────────┘         └───────────┘                                              └──────┘
///
/// It knows topics and nothing else: no queues, no transactions, no acknowledgements, no logins (everybody is let in;
/// what is on the bus proves itself by its MAC). Whoever asks for more is told so by ERROR, as the specification wants.
package struct StompBrokerSession: Sendable {
    package enum Limits {
        /// As much as our own clients take.
        package static let bodyByteCount = StompLink.Limits.bodyByteCount
        package static let subscriptions = 16
        package static let login = Duration.seconds(10)
        package static let heartbeat = Duration.seconds(2)
    }

    private enum Phase: Sendable {
        /// Can transition to: connected, over.
        case unknown
        /// Can transition to: over.
        case connected
        case over
    }

    package enum Effect: Sendable, Equatable {
        case write([UInt8])
        case publish(destination: String, body: [UInt8])
        /// After what is written has gone out.
        case close
    }

    package struct Subscription: Sendable, Equatable {
        package var id: String
        package var destination: String
        package var isWithoutOwn: Bool
    }

    private var phase = Phase.unknown
    private var parser = StompParser(maxBodyByteCount: Limits.bodyByteCount)
    private var frames: [StompFrame] = []
    package private(set) var subscriptions: [Subscription] = []
    private let openedAt: Instant
    private var heardAt: Instant
    private var wroteAt: Instant
    private var outgoingHeartbeat = Duration.zero
    private var incomingHeartbeat = Duration.zero

    package init(now: Instant) { (openedAt, heardAt, wroteAt) = (now, now, now) }

    package mutating func received(_ bytes: UnsafeRawBufferPointer, now: Instant, into effects: inout [Effect]) {
        if case .over = phase { return }
        heardAt = now
        do throws(StompError) {
            try parser.parse(bytes, into: &frames)
        } catch {
            frames.removeAll()
            return refuse("\(error)", &effects)
        }
        for frame in frames { receive(frame, now, &effects) }
        frames.removeAll(keepingCapacity: true)
    }

    package mutating func received(_ bytes: [UInt8], now: Instant, into effects: inout [Effect]) {
        bytes.withUnsafeBytes { received($0, now: now, into: &effects) }
    }

    /// Something was written beside the effects of this machine, and counts as a heart-beat.
    package mutating func wrote(now: Instant) { wroteAt = now }

    package mutating func deadlineReached(now: Instant, into effects: inout [Effect]) {
        switch phase {
        case .over: return
        case .unknown: if now - openedAt >= Limits.login { refuse("no CONNECT came in time", &effects) }
        case .connected:
            // Twice the promise, as the specification's "error margin" allows.
            if incomingHeartbeat > .zero, now - heardAt >= incomingHeartbeat * 2 {
                return refuse("the client's heart-beats stay away", &effects)
            }
            if outgoingHeartbeat > .zero, now - wroteAt >= outgoingHeartbeat / 2 {
                wroteAt = now
                effects.append(.write([UInt8(ascii: "\n")]))
            }
        }
    }

    private mutating func receive(_ frame: StompFrame, _ now: Instant, _ effects: inout [Effect]) {
        switch (phase, frame.command) {
        case (.over, _): return
        case (.unknown, .connect), (.unknown, .stomp): connect(frame, now, &effects)
        case (.connected, .send): send(frame, &effects)
        case (.connected, .subscribe): subscribe(frame, &effects)
        case (.connected, .unsubscribe):
            let id = frame.headers["id"]
            subscriptions.removeAll { $0.id == id }
        case (.connected, .disconnect):
            confirm(frame, &effects)
            phase = .over
            effects.append(.close)
            return
        default: return refuse("\(frame.command.rawValue) is not for this broker, or out of place", &effects)
        }
        if case .connected = phase, frame.command != .connect, frame.command != .stomp { confirm(frame, &effects) }
    }

    private mutating func connect(_ frame: StompFrame, _ now: Instant, _ effects: inout [Effect]) {
        let versions = (frame.headers["accept-version"] ?? "1.0").split(separator: ",")
        guard versions.contains("1.2") else { return refuse("this broker speaks STOMP 1.2 only", &effects) }
        let wanted = (frame.headers["heart-beat"] ?? "0,0").split(separator: ",").map { Int64($0) ?? 0 }
        if wanted.count == 2 {
            func negotiated(_ milliseconds: Int64) -> Duration {
                milliseconds <= 0 ? .zero : max(Limits.heartbeat, .milliseconds(min(milliseconds, 86_400_000)))
            }
            incomingHeartbeat = negotiated(wanted[0])
            outgoingHeartbeat = negotiated(wanted[1])
        }
        phase = .connected
        let interval = Limits.heartbeat.wholeMilliseconds
        write(StompFrame(.connected, ["version": "1.2", "heart-beat": "\(interval),\(interval)"]), &effects)
    }

    private mutating func send(_ frame: StompFrame, _ effects: inout [Effect]) {
        guard let destination = frame.headers["destination"] else {
            return refuse("SEND has no destination", &effects)
        }
        // A body that is too long is passed over, as it is by our clients.
        guard frame.skippedByteCount == 0 else { return }
        effects.append(.publish(destination: destination, body: frame.body))
    }

    private mutating func subscribe(_ frame: StompFrame, _ effects: inout [Effect]) {
        guard let id = frame.headers["id"], let destination = frame.headers["destination"] else {
            return refuse("SUBSCRIBE has no id, or no destination", &effects)
        }
        guard frame.headers["ack"] ?? "auto" == "auto" else {
            return refuse("this broker has subscriptions with ack:auto only", &effects)
        }
        guard subscriptions.count < Limits.subscriptions, !subscriptions.contains(where: { $0.id == id }) else {
            return refuse("there are too many subscriptions, or two of one id", &effects)
        }
        subscriptions.append(
            Subscription(id: id, destination: destination, isWithoutOwn: frame.headers["no-local"] == "true"))
    }

    private mutating func confirm(_ frame: StompFrame, _ effects: inout [Effect]) {
        guard let receipt = frame.headers["receipt"] else { return }
        write(StompFrame(.receipt, ["receipt-id": receipt]), &effects)
    }

    private mutating func refuse(_ text: String, _ effects: inout [Effect]) {
        write(StompFrame(.error, ["message": text]), &effects)
        phase = .over
        effects.append(.close)
    }

    private mutating func write(_ frame: StompFrame, _ effects: inout [Effect]) {
        effects.append(.write(frame.encoded()))
    }
}
