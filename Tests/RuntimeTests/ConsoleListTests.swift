// The console's lists: pages by a cursor, against sorting all of it.

import Primitives
import Server
import Testing
import TrackerLogic
import Web
import Wire

@Suite("Console: lists")
struct ConsoleListTests {
    private let asOf = WallTime(milliseconds: 0)

    private func infoHash(_ number: Int) -> InfoHash {
        var random = RandomStream(seed: UInt64(number), stream: 1)
        var bytes: [UInt8] = []
        for _ in 0..<20 { bytes.append(UInt8(random.below(256))) }
        return InfoHash(Bytes20(bytes)!)
    }

    private func swarms(_ count: Int) -> (swarms: [SwarmSummary], torrents: [InfoHash: RegisteredTorrent]) {
        var random = RandomStream(seed: 7, stream: 2)
        var swarms: [SwarmSummary] = []
        var torrents: [InfoHash: RegisteredTorrent] = [:]
        for number in 0..<count {
            let hash = infoHash(number)
            // Few different counts, so that ties are common.
            swarms.append(
                SwarmSummary(
                    infoHash: hash,
                    counts: SwarmCounts(
                        seeders: UInt32(random.below(4)), leechers: UInt32(random.below(3)),
                        completed: UInt32(random.below(1000)))))
            if random.below(3) == 0 {
                torrents[hash] = RegisteredTorrent(
                    infoHash: hash, name: "Name \(random.below(20))", byteCount: UInt64(random.below(5)))
            }
        }
        return (swarms, torrents)
    }

    @Test(arguments: SwarmQuery.Order.allCases, [false, true])
    func `page after page gives each swarm once, in order`(_ order: SwarmQuery.Order, _ isDescending: Bool) throws {
        let (swarms, torrents) = swarms(500)
        var query = SwarmQuery()
        (query.order, query.isDescending, query.count) = (order, isDescending, 37)
        var rows: [SwarmRow] = []
        repeat {
            let page = SwarmPageMaker(query, torrents).page(of: swarms.shuffledByHash(rows.count), asOf: asOf)
            #expect(page.total == 500)
            #expect(page.rows.count == 37 || page.next == nil)
            rows += page.rows
            // As it goes through the URL.
            query.after = try page.next.map { try #require(SwarmQuery.Cursor($0.text)) }
        } while query.after != nil
        #expect(Set(rows.map(\.infoHash)).count == 500)
        func value(_ row: SwarmRow) -> (UInt64, String) {
            switch order {
            case .hash: (0, "\(row.infoHash)")
            // Those without a name come last, both ways.
            case .name: ((row.registered == nil) != isDescending ? 1 : 0, row.registered?.name ?? "")
            case .size: (row.registered.map { $0.byteCount + 1 } ?? 0, "")
            case .seeders: (UInt64(row.counts.seeders), "")
            case .leechers: (UInt64(row.counts.leechers), "")
            case .completed: (UInt64(row.counts.completed), "")
            }
        }
        for (one, next) in zip(rows, rows.dropFirst()) {
            #expect(isDescending ? value(one) >= value(next) : value(one) <= value(next))
        }
    }

    @Test func `a search finds parts of names and the beginnings of info hashes, in either case`() {
        let (swarms, torrents) = swarms(200)
        var query = SwarmQuery()
        query.count = 500
        query.text = "NAME 7"
        let named = SwarmPageMaker(query, torrents).page(of: swarms, asOf: asOf)
        #expect(named.total == torrents.values.count { $0.name == "Name 7" })
        #expect(named.rows.allSatisfy { $0.registered?.name == "Name 7" })
        let hash = "\(swarms[11].infoHash)"
        for length in [5, 11, 40] {
            query.text = String(hash.uppercased().prefix(length))
            let found = SwarmPageMaker(query, torrents).page(of: swarms, asOf: asOf)
            #expect(found.rows.map(\.infoHash) == [swarms[11].infoHash])
        }
        query.text = hash + "0"
        #expect(SwarmPageMaker(query, torrents).page(of: swarms, asOf: asOf).total == 0)
    }

    @Test func `registered torrents are listed with and without a swarm`() {
        var (swarms, torrents) = swarms(50)
        let alone = infoHash(1000)
        torrents[alone] = RegisteredTorrent(infoHash: alone, name: "Alone", byteCount: 1)
        swarms.removeAll { $0.infoHash == alone }
        var query = SwarmQuery()
        (query.isRegisteredOnly, query.order, query.count) = (true, .name, 500)
        let page = SwarmPageMaker(query, torrents).page(of: swarms, asOf: asOf)
        #expect(Set(page.rows.map(\.infoHash)) == Set(torrents.keys))
        #expect(page.rows.first?.registered?.name == "Alone")
        #expect(page.rows.first?.counts == SwarmCounts())
    }

    @Test(arguments: PeerQuery.Order.allCases, [false, true])
    func `peers come page by page, each once`(_ order: PeerQuery.Order, _ isDescending: Bool) throws {
        var peers: [PeerImage] = []
        for number in 0..<100 {
            let address = SocketAddress(ipv4: UInt32(number / 2), port: UInt16(number % 2 + 1))
            peers.append(
                PeerImage(
                    address: address, peerID: .zero, downloaded: UInt64(number % 7), left: UInt64(number % 5),
                    lastSeen: UInt32(number % 3), isCounted: false))
        }
        var query = PeerQuery()
        (query.order, query.isDescending, query.count) = (order, isDescending, 9)
        var seen: [PeerImage] = []
        repeat {
            // A slice may show one twice.
            let page = PeerPageMaker(query).page(of: peers + peers.prefix(3), total: 100, asOf: asOf)
            seen += page.peers
            query.after = try page.next.map { try #require(PeerQuery.Cursor($0.text)) }
        } while query.after != nil
        #expect(Set(seen.map(\.address)).count == 100)
        #expect(seen.count == 100)
        func value(_ peer: PeerImage) -> UInt64 {
            switch order {
            case .address: peer.address.low << 16 | UInt64(peer.address.port)
            case .downloaded: peer.downloaded
            case .left: peer.left
            case .seen: UInt64(peer.lastSeen)
            }
        }
        for (one, next) in zip(seen, seen.dropFirst()) {
            #expect(isDescending ? value(one) >= value(next) : value(one) <= value(next))
        }
    }

    @Test(arguments: ["", "x", "1.2", "1.zz.00", "-1..\(String(repeating: "0", count: 40))", "1.2.3.4.5"])
    func `what is no cursor is none`(_ text: String) {
        #expect(SwarmQuery.Cursor(text) == nil)
        #expect(PeerQuery.Cursor(text) == nil)
    }
}

extension [SwarmSummary] {
    /// In another order each time: what the table gives has none.
    fileprivate func shuffledByHash(_ turn: Int) -> [SwarmSummary] {
        isEmpty ? self : Array(self[(turn % count)...] + self[..<(turn % count)])
    }
}
