// What one address may take: a flood from one is bounded, a carrier's NAT is not, and those who are in stay in.

import Primitives
import Testing
import TrackerLogic
import Wire

@Suite("Limits of an address")
struct AddressLimitTests {
    private func harness(isClustered: Bool = false, _ change: (inout NodeConfiguration) -> Void) -> NodeHarness {
        var configuration = NodeConfiguration.test
        if isClustered { configuration.cluster = ClusterProfile.classic.configuration(members: []) }
        change(&configuration)
        var harness = NodeHarness(configuration)
        if isClustered {
            harness.step(.busConnected)
            harness.run(.seconds(10))
        }
        return harness
    }

    /// One announce over HTTP.
    ///
    /// - Returns: nil where it is granted.
    private func ask(
        _ harness: inout NodeHarness, _ torrent: Int, _ address: SocketAddress, _ event: AnnounceEvent = .none
    ) throws -> Refusal? {
        let announce = Announce(
            infoHash: .numbered(torrent), peerID: .of(address), left: 1, event: event, port: address.port)
        guard case .failure(let refusal) = try harness.request(.announce(announce), from: address) else { return nil }
        return refusal
    }

    @Test(arguments: [false, true])
    func `a flood from one address is bounded, and leaves the others alone`(_ isClustered: Bool) throws {
        var harness = harness(isClustered: isClustered) {
            $0.limits.peersPerAddress = 50
            $0.limits.updatesPerEntry = 16
        }
        let flooder = SocketAddress.v4(7)
        for port in 1...5_000 {
            let announce = Announce(
                infoHash: .numbered(port % 100), peerID: .zero, left: 1, event: .started, port: UInt16(port))
            harness.step(.requestReceived(ClientRequest(id: 1, source: flooder, content: .announce(announce))))
            if port % 8 == 0 { harness.completeWrites() }
        }
        harness.completeWrites()
        // What is on its way is not held against the bound: two entries at most.
        let held = harness.node.state.table.peers(at: flooder)
        #expect((50...82).contains(held))
        #expect(harness.node.state.table.counts.peers == held)

        #expect(try ask(&harness, 1, flooder.port(6_000)) == .addressFull)
        #expect(try ask(&harness, 1, .v4(8)) == nil, "its neighbour is as welcome as ever")
        // The first fifty ports were let in, each into its torrent.
        #expect(try ask(&harness, 2, flooder.port(2)) == nil, "a known peer refreshes")
        #expect(try ask(&harness, 3, flooder.port(6_000), .stopped) == nil, "a stop is no burden")
        for port in 4..<44 { #expect(try ask(&harness, port, flooder.port(UInt16(port)), .stopped) == nil) }
        #expect(harness.node.state.table.peers(at: flooder) == held - 40)
        #expect(try ask(&harness, 1, flooder.port(6_000)) == nil, "and makes room for another")
    }

    @Test func `over UDP the reason is told`() throws {
        var harness = harness { $0.limits.peersPerAddress = 1 }
        _ = try harness.peers(.numbered(1), from: .v4(1))
        let reply = try harness.announce(.numbered(2), from: .v4(1))
        #expect(reply.errorText == "too many peers from your address")
        _ = try harness.peers(.numbered(1), from: .v4(1), left: 0)
    }

    @Test func `an IPv6 network of 64 bits is one address`() throws {
        var harness = harness { $0.limits.peersPerAddress = 20 }
        for number in 0..<20 { #expect(try ask(&harness, number, .v6(number << 20)) == nil) }
        #expect(try ask(&harness, 99, .v6(99)) == .addressFull)
        let neighbour = SocketAddress(high: 0x2001_0DB8_0000_0001, low: 99, port: 1)
        #expect(try ask(&harness, 99, neighbour) == nil)
        // Not the IPv4 address that the same bits would be.
        #expect(try ask(&harness, 99, .v4(99)) == nil)
    }

    @Test func `a NAT of a thousand honest peers is served, with ten torrents each`() throws {
        var harness = harness { _ in }
        let address = SocketAddress.v4(1)
        for round in 0..<2 {
            for torrent in 0..<10 {
                harness.fill(
                    .numbered(torrent), (0..<1_000).map { (address.port(UInt16(20_000 + $0)), UInt64(1 - round)) })
            }
        }
        #expect(harness.node.state.table.counts.peers == 10_000)
        #expect(harness.node.state.table.counts.seeders == 10_000)
    }

    @Test func `a trusted sender is not bounded, and those whose address it tells are`() throws {
        var harness = harness {
            $0.limits.peersPerAddress = 2
            $0.trusted = [AddressPrefix("10.0.0.0/24")!]
        }
        let proxy = SocketAddress.v4(1)
        for port in 1..<10 { _ = try harness.peers(.numbered(1), from: proxy.port(UInt16(port))) }
        func told(_ port: UInt16) throws -> TrackerReply {
            try harness.announce(.numbered(1), from: proxy) {
                $0.ip = 0xC000_0201
                $0.port = port
            }
        }
        for port in 1...2 { #expect(try told(UInt16(port)).errorText == nil) }
        #expect(try told(3).errorText == Refusal.addressFull.clientText)
        #expect(try told(1).errorText == nil)
        #expect(harness.node.state.table.peers(at: proxy) == 9)
    }

    @Test func `when the table fills up, those who hold much make room for those who hold little`() throws {
        var harness = harness {
            $0.limits.peers = 1_000
            $0.limits.addressSharePercent = 50
            $0.limits.updatesPerEntry = 2
        }
        for number in 0..<3_000 { _ = try ask(&harness, number, .v4(number % 3, port: UInt16(1 + number))) }
        // Each holds half of the room that is left: 1000 / (1 + 3 · 0.5) is free.
        #expect((595...610).contains(harness.node.state.table.counts.peers))
        for number in 0..<380 { #expect(try ask(&harness, number, .v4(100 + number)) == nil) }
        #expect(try ask(&harness, 1, .v4(1)) == .addressFull)
    }

    @Test func `the bound of an address is never below sixteen, nor above what is configured`() {
        var limits = Limits()
        #expect(limits.peersPerAddress(among: 0) == 20_000)
        #expect(limits.peersPerAddress(among: 15_900_000) == 10_000)
        #expect(limits.peersPerAddress(among: 16_000_000) == 16)
        #expect(limits.peersPerAddress(among: 17_000_000) == 16)
        limits.peersPerAddress = 3
        #expect(limits.peersPerAddress(among: 16_000_000) == 3)
        limits.peers = .max
        limits.addressSharePercent = 100
        #expect(limits.peersPerAddress(among: 0) == 3)
    }

    @Test func `who comes back from its record counts as before`() throws {
        var configuration = NodeConfiguration.test
        configuration.limits.peersPerAddress = 30
        var harness = NodeHarness(configuration)
        for number in 0..<30 { _ = try harness.peers(.numbered(number), from: .v4(1)) }
        var second = NodeHarness(
            try harness.disk.restored(configuration), harness.disk, at: harness.now.wall.milliseconds)
        #expect(second.node.state.table.peers(at: .v4(1)) == 30)
        #expect(try ask(&second, 99, .v4(1)) == .addressFull)
        second.run(.seconds(10_000))
        #expect(second.node.state.table.peers(at: .v4(1)) == 0)
        #expect(try ask(&second, 99, .v4(1)) == nil)
    }

    @Test func `counts follow merges and transfers`() throws {
        var random = RandomStream(seed: 71)
        for _ in 0..<rounds(200) {
            let sides = try MergeStory.sides(&random, skew: 3).repositories
            var merged = try sides[0].merged(with: sides[1]).merged(with: sides[2])
            try check(merged)
            try check(try merged.transferred())
            try merged.expire(seenBefore: merged.time - 5)
            try check(merged)
        }
    }

    private func check(_ repository: Repository) throws {
        let peers = try repository.images().flatMap { $0.peers.map(\.address) }
        #expect(repository.state.table.counts.peers == peers.count)
        for address in peers + (0..<6).map({ SocketAddress.v4($0) }) {
            let near = peers.count {
                $0.isIPv4 == address.isIPv4 && $0.high == address.high && (!address.isIPv4 || $0.low == address.low)
            }
            #expect(repository.state.table.peers(at: address) == near)
        }
    }
}
