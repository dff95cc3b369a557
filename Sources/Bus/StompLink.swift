// One connection to a STOMP broker.

import Primitives
import Wire

/// Why a connection ended that was not to end.
package enum StompFailure: Error, Sendable, Hashable, CustomStringConvertible {
    /// ERROR instead of CONNECTED, in the broker's words.
    case refused(String)
    case error(String)
    case notStomp(StompError)
    case otherVersion(String)
    /// Nothing came, not even a heart-beat.
    case silent(Duration)
    /// It takes no more bytes.
    case blocked(Duration)
    case slowStart(Duration)
    /// The connection was closed, or could not be made; in words.
    case closed(String)

    package var description: String {
        switch self {
        case .refused(let text):
            "it refuses the login (\(text)). Check user, password, virtual host and the user's rights on the broker"
        case .error(let text): "it says ERROR (\(text)). Its log tells more"
        case .notStomp(let error):
            "it does not speak STOMP: \(error). Check the port: it must be the broker's STOMP port, with TLS where the "
                + "URL says so"
        case .otherVersion(let version): "it speaks STOMP \(version) and not 1.2. Use a broker of this decade"
        case .silent(let span):
            "nothing came from it for \(span.wholeMilliseconds) ms, not even a heart-beat. It is overloaded, or the "
                + "network between is cut"
        case .blocked(let span):
            "it has taken nothing for \(span.wholeMilliseconds) ms. It is overloaded, or out of memory or disk: "
                + "its log tells"
        case .slowStart(let span):
            "it took more than \(span.wholeMilliseconds) ms to log in and subscribe. It is overloaded, or its port "
                + "speaks another protocol"
        case .closed(let text): text
        }
    }
}

/// One connection to a STOMP broker, from its opening to its end.
///
///     ┌─────────┐ CONNECTED ┌─────────────┐ all receipts ┌───────┐ end ┌────────┐ receipt ┌──────┐
///     │ greeted ├──────────►│ subscribing ├─────────────►│ ready ├────►│ ending ├────────►│ over │
///     └────┬────┘           └──────┬──────┘              └───┬───┘     └───┬────┘         └──────┘
///          └───────────────────────┴─────────────────────────┴─────────────┴── failure ──────►
///
/// A connection is ready once the broker has confirmed its subscriptions: who sends before does not hear the answers.
/// It fails when the broker says ERROR, speaks no STOMP, stays silent for more than two of its heart-beats, takes
/// nothing for as long as `Limits.blocked`, or needs too long to get ready.
///
/// Bytes come in and go out; the clock is an argument. `StompBus` holds the socket.
package struct StompLink: Sendable {
    package enum Limits {
        /// Longer bodies are none of ours, and passed over.
        package static let bodyByteCount = 1 << 20
        /// What we promise and want: a heart-beat within this time.
        package static let heartbeat = Duration.seconds(2)
        /// Beyond twice the promised interval: the brokers send theirs by coarse timers.
        static let heartbeatGrace = Duration.seconds(1)
        package static let start = Duration.seconds(10)
        package static let blocked = Duration.seconds(6)
        package static let ending = Duration.seconds(1)
        /// Bytes of the broker's words that a log shows.
        static let shownByteCount = 200
        /// What the broker keeps for us while we are slow; it would keep gigabytes else, and all of it late.
        static let brokerQueueByteCount = 64 << 20
        static let brokerQueueCount = 4096
        static let brokerQueueAge = Duration.seconds(10)
    }

    private enum Phase: Sendable {
        /// CONNECT is sent. Can transition to: subscribing, over.
        case greeted
        /// SUBSCRIBEs are sent. Can transition to: ready, over.
        case subscribing
        /// Can transition to: ending, over.
        case ready
        /// DISCONNECT is sent. Can transition to: over.
        case ending
        case over
    }

    package enum Effect: Sendable, Equatable {
        case write([UInt8])
        /// Subscribed; what is sent from now on is heard.
        case ready
        /// The body of a message.
        case received([UInt8])
        /// A message that cannot be ours.
        case passedOver
        /// Close the connection; nil: it was to end, or the other end has closed it.
        case close(StompFailure?)
    }

    private let login: StompLogin?
    private let virtualHost: String
    private let destinations: [String]
    private var phase = Phase.greeted
    private var parser = StompParser(maxBodyByteCount: Limits.bodyByteCount)
    private var frames: [StompFrame] = []
    private var receipts = 0
    private let openedAt: Instant
    private var readyAt: Instant?
    private var endingAt: Instant?
    private var heardAt: Instant
    private var wroteAt: Instant
    private var blockedSince: Instant?
    /// Zero: none.
    private var outgoingHeartbeat = Duration.zero
    private var incomingHeartbeat = Duration.zero

    /// The connection was made (and TLS is up).
    ///
    /// - Parameters:
    ///   - login: nil where the broker lets anybody in.
    ///   - virtualHost: of the broker.
    ///   - destinations: to subscribe to, at least one.
    ///   - now: the monotonic clock.
    ///   - effects: gets what to do.
    package init(
        login: StompLogin?, virtualHost: String, destinations: [String], now: Instant, into effects: inout [Effect]
    ) {
        precondition(!destinations.isEmpty, "a link is for hearing something")
        self.login = login
        self.virtualHost = virtualHost
        self.destinations = destinations
        (openedAt, heardAt, wroteAt) = (now, now, now)
        let interval = String(Limits.heartbeat.wholeMilliseconds)
        var headers = StompHeaders([
            "accept-version": "1.2", "host": virtualHost, "heart-beat": "\(interval),\(interval)",
        ])
        if let login {
            headers.append("login", login.user)
            headers.append("passcode", login.password)
        }
        write(StompFrame(.connect, headers), now, &effects)
    }

    package var isReady: Bool {
        if case .ready = phase { true } else { false }
    }

    /// For how long it has been ready.
    package func readyFor(now: Instant) -> Duration { readyAt.map { now - $0 } ?? .zero }

    // MARK: What happens

    package mutating func received(_ bytes: UnsafeRawBufferPointer, now: Instant, into effects: inout [Effect]) {
        if case .over = phase { return }
        heardAt = now
        do throws(StompError) {
            try parser.parse(bytes, into: &frames)
        } catch {
            frames.removeAll()
            return fail(.notStomp(error), &effects)
        }
        for frame in frames { receive(frame, now, &effects) }
        frames.removeAll(keepingCapacity: true)
    }

    package mutating func received(_ bytes: [UInt8], now: Instant, into effects: inout [Effect]) {
        bytes.withUnsafeBytes { received($0, now: now, into: &effects) }
    }

    /// The connection is closed.
    package mutating func closed(_ reason: String, into effects: inout [Effect]) {
        switch phase {
        case .over: return
        case .ending:
            phase = .over
            effects.append(.close(nil))
        case .greeted:
            fail(.closed("\(reason) before it answered the login. Check the port and the broker's log"), &effects)
        case .subscribing, .ready: fail(.closed(reason), &effects)
        }
    }

    /// Whether the socket takes more bytes.
    package mutating func writability(_ isWritable: Bool, now: Instant) {
        if isWritable { blockedSince = nil } else if blockedSince == nil { blockedSince = now }
    }

    /// Something was written beside the effects of this machine, and counts as a heart-beat.
    package mutating func wrote(now: Instant) { wroteAt = now }

    /// Ends in good order.
    package mutating func end(now: Instant, into effects: inout [Effect]) {
        switch phase {
        case .over, .ending: return
        case .greeted, .subscribing:
            phase = .over
            effects.append(.close(nil))
        case .ready:
            phase = .ending
            endingAt = now
            write(StompFrame(.disconnect, ["receipt": "end"]), now, &effects)
        }
    }

    package mutating func deadlineReached(now: Instant, into effects: inout [Effect]) {
        if case .over = phase { return }
        if let endingAt, now - endingAt >= Limits.ending {
            phase = .over
            effects.append(.close(nil))
            return
        }
        if readyAt == nil, now - openedAt >= Limits.start { return fail(.slowStart(now - openedAt), &effects) }
        if let silence, now - heardAt >= silence { return fail(.silent(now - heardAt), &effects) }
        if let blockedSince, now - blockedSince >= Limits.blocked {
            return fail(.blocked(now - blockedSince), &effects)
        }
        if outgoingHeartbeat > .zero, now - wroteAt >= outgoingHeartbeat / 2 {
            wroteAt = now
            effects.append(.write([UInt8(ascii: "\n")]))
        }
    }

    /// The next time at which something may have to be done; nil where the link is over.
    package var nextDeadline: Instant? {
        if case .over = phase { return nil }
        var deadline: Instant? = readyAt == nil ? openedAt + Limits.start : nil
        deadline = earliest(deadline, endingAt.map { $0 + Limits.ending })
        deadline = earliest(deadline, silence.map { heardAt + $0 })
        deadline = earliest(deadline, blockedSince.map { $0 + Limits.blocked })
        if outgoingHeartbeat > .zero { deadline = earliest(deadline, wroteAt + outgoingHeartbeat / 2) }
        return deadline
    }

    private var silence: Duration? {
        incomingHeartbeat > .zero ? incomingHeartbeat * 2 + Limits.heartbeatGrace : nil
    }

    // MARK: Frames

    private mutating func receive(_ frame: StompFrame, _ now: Instant, _ effects: inout [Effect]) {
        switch (phase, frame.command) {
        case (.over, _): return
        case (_, .error): receiveError(frame, &effects)
        case (.greeted, .connected): connected(frame, now, &effects)
        case (.subscribing, .receipt):
            receipts += 1
            guard receipts == destinations.count else { return }
            phase = .ready
            readyAt = now
            effects.append(.ready)
        case (.ending, .receipt):
            phase = .over
            effects.append(.close(nil))
        case (.subscribing, .message), (.ready, .message), (.ending, .message):
            effects.append(frame.skippedByteCount > 0 ? .passedOver : .received(frame.body))
        default:
            fail(.notStomp(.unknownCommand("\(frame.command.rawValue), out of place,")), &effects)
        }
    }

    private mutating func connected(_ frame: StompFrame, _ now: Instant, _ effects: inout [Effect]) {
        let version = frame.headers["version"] ?? "1.0"
        guard version == "1.2" else { return fail(.otherVersion(shown(version)), &effects) }
        let theirs = (frame.headers["heart-beat"] ?? "0,0").split(separator: ",").map { Int64($0) ?? 0 }
        if theirs.count == 2 {
            // "For the sender: MAX(cx, sy)", and none where one of both is 0.
            func negotiated(_ milliseconds: Int64) -> Duration {
                milliseconds <= 0 ? .zero : max(Limits.heartbeat, .milliseconds(min(milliseconds, 86_400_000)))
            }
            outgoingHeartbeat = negotiated(theirs[1])
            incomingHeartbeat = negotiated(theirs[0])
        }
        phase = .subscribing
        for (number, destination) in destinations.enumerated() {
            write(
                StompFrame(
                    .subscribe,
                    [
                        "id": "\(number)", "destination": destination, "ack": "auto", "receipt": "\(number)",
                        // RabbitMQ's bounds of the queue behind the subscription.
                        "x-message-ttl": "\(Limits.brokerQueueAge.wholeMilliseconds)",
                        "x-max-length-bytes": "\(Limits.brokerQueueByteCount)",
                        // ActiveMQ's bound, and its and Artemis's way not to send us our own.
                        "activemq.maximumPendingMessageLimit": "\(Limits.brokerQueueCount)",
                        "activemq.noLocal": "true", "no-local": "true",
                    ]), now, &effects)
        }
    }

    private mutating func receiveError(_ frame: StompFrame, _ effects: inout [Effect]) {
        let message = frame.headers["message"] ?? ""
        let body = String(decoding: frame.body.prefix(Limits.shownByteCount), as: UTF8.self)
        let line = body.split(whereSeparator: \.isNewline).first.map(String.init) ?? ""
        let text = shown(
            message.isEmpty || line.contains(message) ? line : line.isEmpty ? message : "\(message): \(line)")
        if case .greeted = phase { fail(.refused(text), &effects) } else { fail(.error(text), &effects) }
    }

    /// A broker's words as a log may show them: short, on one line, without the login.
    private func shown(_ text: String) -> String {
        var text = text
        if let login {
            if login.password.count > 1 { text = text.replacing(login.password, with: "…") }
            if login.user.count > 1 { text = text.replacing(login.user, with: "…") }
        }
        var shown = ""
        for scalar in text.unicodeScalars where shown.utf8.count < Limits.shownByteCount {
            shown.unicodeScalars.append(scalar.isHarmful ? " " : scalar)
        }
        return shown
    }

    private mutating func fail(_ failure: StompFailure, _ effects: inout [Effect]) {
        phase = .over
        effects.append(.close(failure))
    }

    private mutating func write(_ frame: StompFrame, _ now: Instant, _ effects: inout [Effect]) {
        wroteAt = now
        effects.append(.write(frame.encoded()))
    }
}
