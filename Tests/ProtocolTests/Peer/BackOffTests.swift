// How long peers that fail are left alone.

import PeerLogic
import Primitives
import Testing
import Wire

/// Rule 31, `silentAreSpared`: peers that fail are left alone for longer each time, and whoever answers begins anew.
@Suite("Back-off of peers")
struct BackOffTests {
    /// A session that knows of one peer, and its owner.
    private struct Caller {
        static let address = SocketAddress(ipv4: 0x0A00_0002, port: 6881)

        var session: TorrentSession
        var now = Instant(nanoseconds: 1_000_000_000)
        var actions: [TorrentSession.Action] = []

        init() {
            let layout = PieceLayout(pieceLength: 32_768, totalLength: 100_000)
            var torrent = TorrentSession.Torrent(infoHash: InfoHash(Bytes20(Array(repeating: 7, count: 20))!))
            torrent.layout = layout
            session = TorrentSession(
                torrent, peerID: PeerID(Bytes20(Array(repeating: 1, count: 20))!), settings: SessionSettings(),
                random: RandomStream(seed: 1))
            step(.started(have: Bitfield(count: layout.pieceCount)))
        }

        mutating func step(_ event: TorrentSession.Event) {
            actions.removeAll()
            session.step(event, now: now, into: &actions)
        }

        var call: LinkID? {
            for case .dial(let link, Self.address) in actions { return link }
            return nil
        }

        /// Waits until the peer is called; nil where it is not, within ten minutes.
        mutating func waitForCall() -> (link: LinkID, after: Duration)? {
            let start = now
            while now - start < .seconds(600) {
                if let link = call { return (link, now - start) }
                now = session.nextDeadline.map { max($0, now) } ?? now + .seconds(600)
                step(.deadlineReached)
            }
            return nil
        }

        /// The peer calls, from a port that tells nothing.
        mutating func accept() throws -> LinkID {
            let name = session.newLink(now: now, into: &actions)
            let incoming = try #require(name)
            let other = PeerHandshake(
                capabilities: [.extensions, .fast], infoHash: InfoHash(Bytes20(Array(repeating: 7, count: 20))!),
                peerID: PeerID(Bytes20(Array(repeating: 2, count: 20))!))
            var source = Self.address
            source.port = 50_000
            step(.accepted(incoming, source, other))
            return incoming
        }

        mutating func hearWhereItListens(_ link: LinkID) {
            var handshake = ExtensionHandshake()
            handshake.listenPort = Self.address.port
            step(.messageReceived(link, .extended(id: 0, payload: handshake.encoded())))
        }
    }

    @Test func `the wait after a failed call grows`() {
        var caller = Caller()
        caller.step(.peersFound([Caller.address], .tracker))
        for expected in [0, 30, 60, 120, 240] as [Int64] {
            guard let call = caller.waitForCall() else {
                Issue.record("no call")
                return
            }
            #expect(abs(call.after.wholeSeconds - expected) <= 1)
            caller.step(.linkClosed(call.link, .unreachable))
        }
    }

    /// Seeds 78, 182 and 532 of swarms once seemed to break the rule here.
    @Test func `who has called, and says where it listens, begins anew, though a second call to it failed`() throws {
        var caller = Caller()
        caller.step(.peersFound([Caller.address], .tracker))
        let first = caller.waitForCall()
        let call = try #require(first)
        let incoming = try caller.accept()
        // It hangs up on our call, for there is one connection already.
        caller.step(.linkClosed(call.link, .closed))
        caller.hearWhereItListens(incoming)
        caller.step(.paused)
        caller.step(.started(have: Bitfield(count: 4)))
        let second = caller.waitForCall()
        let again = try #require(second)
        #expect(abs(again.after.wholeSeconds - 30) <= 1)
        caller.step(.linkClosed(again.link, .unreachable))
        // That was the first failure of a row, not the second.
        let third = caller.waitForCall()
        #expect(abs(try #require(third).after.wholeSeconds - 30) <= 1)
    }

    /// Seeds 5, 21 and 56 of swarms: it was called again and again, for its own connection did not stand for where it
    /// listens when our call to it ended.
    @Test func `who has called is not called again, when our own call to it comes to nothing`() throws {
        var caller = Caller()
        caller.step(.peersFound([Caller.address], .tracker))
        let first = caller.waitForCall()
        let call = try #require(first)
        let incoming = try caller.accept()
        caller.hearWhereItListens(incoming)
        caller.step(.linkClosed(call.link, .unreachable))
        let end = caller.now + .seconds(200)
        while let next = caller.session.nextDeadline, next < end {
            caller.now = max(caller.now, next)
            caller.step(.deadlineReached)
            #expect(caller.call == nil)
        }
        // When it has left, it is.
        caller.now = end
        caller.step(.linkClosed(incoming, .closed))
        let second = caller.waitForCall()
        #expect(abs(try #require(second).after.wholeSeconds - 30) <= 1)
    }
}
