// The conversation with a broker: what is said when, what ends it, and which broker comes next.

import Bus
import Primitives
import Testing
import Wire

@Suite("STOMP link")
struct StompLinkTests {
    typealias Effect = StompLink.Effect
    private let start = Instant(nanoseconds: 1_000_000_000)

    private func link(
        login: StompLogin? = nil, destinations: [String] = ["/topic/a", "/topic/b"]
    ) -> (link: StompLink, effects: [Effect]) {
        var effects: [Effect] = []
        let link = StompLink(
            login: login, virtualHost: "/", destinations: destinations, now: start, into: &effects)
        return (link, effects)
    }

    private func after(_ milliseconds: Int64) -> Instant { start + .milliseconds(milliseconds) }

    private func receive(_ link: inout StompLink, _ frame: StompFrame, after milliseconds: Int64 = 0) -> [Effect] {
        var effects: [Effect] = []
        link.received(frame.encoded(), now: after(milliseconds), into: &effects)
        return effects
    }

    private func tick(_ link: inout StompLink, after milliseconds: Int64) -> [Effect] {
        var effects: [Effect] = []
        link.deadlineReached(now: after(milliseconds), into: &effects)
        return effects
    }

    private func written(_ effects: [Effect]) throws -> [StompFrame] {
        var parser = StompParser(maxBodyByteCount: 1000)
        var frames: [StompFrame] = []
        for case .write(let bytes) in effects { try parser.parse(bytes, into: &frames) }
        return frames
    }

    /// A link that is ready, and promised heart-beats of two seconds both ways.
    private func ready(login: StompLogin? = nil) -> StompLink {
        var (link, _) = link(login: login)
        _ = receive(&link, StompFrame(.connected, ["version": "1.2", "heart-beat": "2000,2000"]))
        _ = receive(&link, StompFrame(.receipt, ["receipt-id": "0"]))
        #expect(!link.isReady)
        #expect(receive(&link, StompFrame(.receipt, ["receipt-id": "1"])) == [.ready])
        #expect(link.isReady)
        return link
    }

    @Test func `it logs in, subscribes, and is ready when the broker has confirmed both subscriptions`() throws {
        var (link, effects) = link(login: StompLogin(user: "me", password: "pass:word"))
        let connect = try written(effects)
        #expect(connect.count == 1 && connect[0].command == .connect)
        #expect(connect[0].headers["login"] == "me" && connect[0].headers["passcode"] == "pass:word")
        #expect(connect[0].headers["accept-version"] == "1.2" && connect[0].headers["host"] == "/")
        effects = receive(&link, StompFrame(.connected, ["version": "1.2"]))
        let subscribes = try written(effects)
        #expect(subscribes.map { $0.headers["destination"] } == ["/topic/a", "/topic/b"])
        #expect(subscribes.allSatisfy { $0.command == .subscribe && $0.headers["ack"] == "auto" })
        let ids = subscribes.compactMap { $0.headers["receipt"] }
        #expect(receive(&link, StompFrame(.receipt, ["receipt-id": ids[0]])) == [])
        // A message may come between the two.
        #expect(receive(&link, StompFrame(.message, body: [1])) == [.received([1])])
        #expect(receive(&link, StompFrame(.receipt, ["receipt-id": ids[1]])) == [.ready])
        #expect(receive(&link, StompFrame(.message, body: [0, 2])) == [.received([0, 2])])
        let long = StompFrame(.message, body: [UInt8](repeating: 1, count: StompLink.Limits.bodyByteCount + 1))
        #expect(receive(&link, long) == [.passedOver])
    }

    @Test func `without a login it sends none`() throws {
        let headers = try written(link().effects)[0].headers
        #expect(headers["login"] == nil && headers["passcode"] == nil)
    }

    @Test func `a refused login is told in the broker's words, without the login`() throws {
        let login = StompLogin(user: "operator", password: "hunter22")
        var (link, _) = link(login: login)
        let error = StompFrame(
            .error, ["message": "Bad CONNECT"],
            body: Array("Access refused for user 'operator' with hunter22\nsecond line\n".utf8))
        let effects = receive(&link, error)
        guard case .close(.refused(let text)) = effects.first, effects.count == 1 else {
            Issue.record("\(effects)")
            return
        }
        #expect(text == "Bad CONNECT: Access refused for user '…' with …")
        #expect(!"\(effects) \(login) \(String(reflecting: login))".contains("hunter22"))
        #expect(link.nextDeadline == nil)
        #expect(receive(&link, error) == [])
    }

    @Test func `an error later on ends it, and its text is one short line`() {
        var link = ready()
        let text = String(repeating: "x", count: 500) + "\u{1B}[31m\n"
        let effects = receive(&link, StompFrame(.error, ["message": "a\tb\u{1B}c"], body: Array(text.utf8)))
        guard case .close(.error(let shown)) = effects.first else {
            Issue.record("\(effects)")
            return
        }
        #expect(shown.hasPrefix("a b c: xxx") && shown.utf8.count <= 204)
    }

    /// U+009B begins a terminal's command as ESC [ does; the others turn the writing direction, or end a line.
    @Test(arguments: [true, false])
    func `a broker's words talk to no terminal, and turn no line around`(_ isRefusal: Bool) {
        let hostile = "a\u{9B}31m b\u{85}c \u{202E}gpj.exe \u{2066}x\u{2069} \u{2028}y\u{200F}z\u{61C}"
        var link = isRefusal ? self.link().link : ready()
        let body = Array("\(hostile) and \u{9D}more\nsecond line".utf8)
        let effects = receive(&link, StompFrame(.error, ["message": hostile], body: body))
        let shown: String
        switch effects.first {
        case .close(.refused(let text)) where isRefusal, .close(.error(let text)) where !isRefusal: shown = text
        default:
            Issue.record("\(effects)")
            return
        }
        #expect(shown.unicodeScalars.allSatisfy { !$0.isHarmful }, "\(shown.debugDescription)")
        #expect(shown.hasPrefix("a 31m b c  gpj.exe  x   y z "))
        // The version of a broker that speaks another one is told, too.
        guard isRefusal else { return }
        link = self.link().link
        let version = StompFrame(.connected, ["version": "1.1\u{202E}\u{9B}2J"])
        #expect(receive(&link, version) == [.close(.otherVersion("1.1  2J"))])
    }

    @Test func `what is no broker is left`() {
        for (bytes, word) in [
            ("HTTP/1.1 400 Bad Request\r\n", "STOMP port"), ("MESSAGE\n\n\0", "out of place"),
            ("CONNECTED\nversion:1.1\n\n\0", "1.1"), ("CONNECTED\n\n\0", "1.0"),
        ] {
            var (link, _) = link()
            var effects: [Effect] = []
            link.received(Array(bytes.utf8), now: start, into: &effects)
            guard case .close(let failure?) = effects.last else {
                Issue.record("\(bytes): \(effects)")
                continue
            }
            #expect("\(failure)".contains(word))
        }
    }

    @Test func `it beats at half of what it promised, whenever it has written nothing else`() {
        var link = ready()
        #expect(link.nextDeadline == after(1000))
        #expect(tick(&link, after: 999) == [])
        #expect(tick(&link, after: 1000) == [.write([0x0A])])
        link.wrote(now: after(1700))
        #expect(tick(&link, after: 2600) == [])
        #expect(tick(&link, after: 2700) == [.write([0x0A])])
    }

    @Test func `a broker that is silent for more than two heart-beats is lost`() {
        var link = ready()
        var effects: [Effect] = []
        link.received([0x0A], now: after(3000), into: &effects)
        #expect(effects == [])
        #expect(!tick(&link, after: 7999).contains { if case .close = $0 { true } else { false } })
        #expect(tick(&link, after: 8000) == [.close(.silent(.seconds(5)))])
    }

    @Test func `without heart-beats of the broker silence is no loss`() {
        var (link, _) = link(destinations: ["/topic/a"])
        _ = receive(&link, StompFrame(.connected, ["version": "1.2", "heart-beat": "0,0"]))
        #expect(receive(&link, StompFrame(.receipt)) == [.ready])
        #expect(tick(&link, after: 1_000_000) == [])
        #expect(link.nextDeadline == nil)
    }

    @Test func `a broker that takes nothing is lost, one that takes its time is not`() {
        var link = ready()
        link.writability(false, now: after(100))
        link.writability(true, now: after(4000))
        link.writability(false, now: after(4000))
        link.writability(false, now: after(5000))
        _ = receive(&link, StompFrame(.message, body: [1]), after: 9000)
        #expect(!tick(&link, after: 9999).contains { if case .close = $0 { true } else { false } })
        #expect(tick(&link, after: 10_000) == [.close(.blocked(.seconds(6)))])
    }

    @Test func `a broker that does not get ready in time is left`() {
        var (link, _) = link()
        #expect(link.nextDeadline == after(10_000))
        #expect(tick(&link, after: 9999) == [])
        #expect(tick(&link, after: 10_000) == [.close(.slowStart(.seconds(10)))])
        var (other, _) = self.link()
        _ = receive(&other, StompFrame(.connected, ["version": "1.2"]))
        #expect(tick(&other, after: 10_000) == [.close(.slowStart(.seconds(10)))])
    }

    @Test func `it says goodbye, and waits a second for the answer`() throws {
        var link = ready()
        var effects: [Effect] = []
        link.end(now: start, into: &effects)
        #expect(try written(effects).map(\.command) == [.disconnect])
        #expect(receive(&link, StompFrame(.message, body: [1])) == [.received([1])])
        #expect(receive(&link, StompFrame(.receipt, ["receipt-id": "end"])) == [.close(nil)])
        var deaf = ready()
        effects = []
        deaf.end(now: start, into: &effects)
        #expect(tick(&deaf, after: 1000) == [.close(nil)])
        var gone = ready()
        gone.end(now: start, into: &effects)
        effects = []
        gone.closed("it closed the connection", into: &effects)
        #expect(effects == [.close(nil)])
        var early = self.link().link
        effects = []
        early.end(now: start, into: &effects)
        #expect(effects == [.close(nil)])
    }

    @Test func `a closed connection is a failure, with a hint where it came before the login`() {
        var link = ready()
        var effects: [Effect] = []
        link.closed("it broke the connection", into: &effects)
        link.closed("again", into: &effects)
        #expect(effects == [.close(.closed("it broke the connection"))])
        var (early, _) = self.link()
        effects = []
        early.closed("it closed the connection", into: &effects)
        guard case .close(.closed(let text)) = effects.first else {
            Issue.record("\(effects)")
            return
        }
        #expect(text.contains("before it answered the login"))
    }

    // MARK: Which broker

    @Test func `each broker is tried at once, and then all of them with growing patience`() {
        var rotation = BrokerRotation(count: 3, seed: 1)
        var waits: [Duration] = []
        var places: [Int] = []
        for _ in 0..<60 {
            places.append(rotation.index)
            waits.append(rotation.failed(lasted: .zero, wasRefused: false))
        }
        #expect(places.prefix(7) == [0, 1, 2, 0, 1, 2, 0])
        #expect(waits[0] <= .milliseconds(100) && waits[1] <= .milliseconds(100))
        #expect(waits[2] >= .milliseconds(125) && waits[2] <= .milliseconds(250))
        #expect(waits[50] >= .milliseconds(1500) && waits.allSatisfy { $0 <= BrokerRotation.Limits.most })
        // After a success it begins anew, with the next.
        let wait = rotation.failed(lasted: .seconds(60), wasRefused: false)
        #expect(wait <= .milliseconds(100) && rotation.failures == 1)
    }

    @Test func `a broker that drops us at once is not hammered`() {
        var rotation = BrokerRotation(count: 1, seed: 2)
        var total = Duration.zero
        for _ in 0..<20 { total = total + rotation.failed(lasted: .milliseconds(300), wasRefused: false) }
        #expect(total > .seconds(20))
    }

    @Test func `a refused login is not repeated for seconds`() {
        for count in [1, 3] {
            var rotation = BrokerRotation(count: count, seed: 3)
            // Another broker may know the user: each is asked once.
            for _ in 0..<count - 1 {
                #expect(rotation.failed(lasted: .zero, wasRefused: true) <= .milliseconds(100))
            }
            for _ in 0..<10 { #expect(rotation.failed(lasted: .zero, wasRefused: true) >= .milliseconds(2500)) }
        }
    }

    @Test func `trackers that lose a broker together do not come back together`() {
        let waits = (1...20 as ClosedRange<UInt64>).map { seed in
            var rotation = BrokerRotation(count: 1, seed: seed)
            return rotation.failed(lasted: .seconds(60), wasRefused: false)
        }
        #expect(Set(waits).count == 20)
    }
}

@Suite("Embedded broker's sessions")
struct StompBrokerSessionTests {
    private let start = Instant(nanoseconds: 0)

    private func converse(
        _ session: inout StompBrokerSession, _ frames: StompFrame..., at now: Instant = Instant(nanoseconds: 0)
    ) throws -> (replies: [StompFrame], others: [StompBrokerSession.Effect]) {
        var effects: [StompBrokerSession.Effect] = []
        for frame in frames { session.received(frame.encoded(), now: now, into: &effects) }
        var parser = StompParser(maxBodyByteCount: 1000)
        var replies: [StompFrame] = []
        var others: [StompBrokerSession.Effect] = []
        for effect in effects {
            if case .write(let bytes) = effect {
                try parser.parse(bytes, into: &replies)
            } else {
                others.append(effect)
            }
        }
        return (replies, others)
    }

    private let connect = StompFrame(.connect, ["accept-version": "1.1,1.2", "heart-beat": "2000,2000"])

    @Test func `a client connects, subscribes, publishes and goes`() throws {
        var session = StompBrokerSession(now: start)
        #expect(try converse(&session, connect).replies.map { $0.headers["version"] } == ["1.2"])
        let subscribe = StompFrame(.subscribe, ["id": "0", "destination": "/topic/a", "receipt": "7"])
        #expect(try converse(&session, subscribe).replies.map { $0.headers["receipt-id"] } == ["7"])
        #expect(session.subscriptions.map(\.destination) == ["/topic/a"])
        let sent = try converse(&session, StompFrame(.send, ["destination": "/topic/b"], body: [1, 0]))
        #expect(sent.others == [.publish(destination: "/topic/b", body: [1, 0])])
        _ = try converse(&session, StompFrame(.unsubscribe, ["id": "0"]))
        #expect(session.subscriptions.isEmpty)
        let gone = try converse(&session, StompFrame(.disconnect, ["receipt": "8"]))
        #expect(gone.replies.map { $0.headers["receipt-id"] } == ["8"])
        #expect(gone.others == [.close])
    }

    @Test(arguments: [
        StompFrame(.send, ["destination": "/topic/a"]), StompFrame(.connect, ["accept-version": "1.1"]),
        StompFrame(.connected),
    ])
    func `who does not begin with CONNECT in version 1.2 is told and left`(_ frame: StompFrame) throws {
        var session = StompBrokerSession(now: start)
        let (replies, others) = try converse(&session, frame)
        #expect(replies.map(\.command) == [.error] && others == [.close])
        #expect(try converse(&session, connect).replies == [])
    }

    @Test(arguments: [
        StompFrame(.send), StompFrame(.subscribe, ["id": "0"]), StompFrame(.begin, ["transaction": "1"]),
        StompFrame(.subscribe, ["id": "0", "destination": "/topic/a", "ack": "client"]), StompFrame(.ack, ["id": "1"]),
    ])
    func `what this broker cannot do is told`(_ frame: StompFrame) throws {
        var session = StompBrokerSession(now: start)
        let (replies, others) = try converse(&session, connect, frame)
        #expect(replies.map(\.command) == [.connected, .error] && others == [.close])
    }

    @Test func `subscriptions are bounded`() throws {
        var session = StompBrokerSession(now: start)
        _ = try converse(&session, connect)
        for number in 0..<16 {
            let frame = StompFrame(.subscribe, ["id": "\(number)", "destination": "/topic/a"])
            #expect(try converse(&session, frame).others == [])
        }
        let more = StompFrame(.subscribe, ["id": "x", "destination": "/topic/a"])
        #expect(try converse(&session, more).others == [.close])
    }

    @Test func `a client that says nothing is left, before and after it has connected`() throws {
        var mute = StompBrokerSession(now: start)
        var effects: [StompBrokerSession.Effect] = []
        mute.deadlineReached(now: start + .seconds(9), into: &effects)
        #expect(effects == [])
        mute.deadlineReached(now: start + .seconds(10), into: &effects)
        #expect(effects.last == .close)
        var session = StompBrokerSession(now: start)
        _ = try converse(&session, connect)
        effects = []
        session.deadlineReached(now: start + .milliseconds(1000), into: &effects)
        #expect(effects == [.write([0x0A])])
        session.deadlineReached(now: start + .milliseconds(3999), into: &effects)
        #expect(effects.last != .close)
        session.deadlineReached(now: start + .milliseconds(4000), into: &effects)
        #expect(effects.last == .close)
    }
}
