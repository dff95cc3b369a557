// Whom the load generator speaks for: how many addresses its peers have, and what it says where they are too few.

import LoadGenerator
import Primitives
import Testing
import TrackerLogic

@Suite("Load: addresses")
struct LoadAddressTests {
    private static let here = SocketAddress(ipv4: 0x7F00_0001, port: 6969)
    private static let elsewhere = [
        SocketAddress(ipv4: 0xC000_0201, port: 6969), SocketAddress(ipv4: 0xEFC0_0707, port: 6969),
        SocketAddress(high: 0x2001_0DB8_0000_0000, low: 1, port: 6969), SocketAddress(high: 0, low: 1, port: 6969),
    ]

    private func options(_ target: SocketAddress, _ peers: Int? = nil, sources: Int? = nil) -> LoadOptions {
        var options = LoadOptions(target: target)
        if let peers { options.peers = peers }
        options.spread()
        if let sources { options.sources = sources }
        return options
    }

    @Test(
        arguments: [
            (1, 64), (64_000, 64), (64_999, 64), (65_000, 65), (100_000, 100), (2_000_000, 2_000),
            (16_384_000, 16_384), (900_000_000, 16_384),
        ])
    func `on loopback there is an address for each thousand peers, and never fewer than 64`(
        _ peers: Int, _ count: Int
    ) {
        #expect(options(Self.here, peers).sources == count)
    }

    @Test func `who is spread is taken for a NAT at most`() {
        let bound = Limits().peersPerAddress
        for peers in [1, 20_001, 300_000] {
            let options = options(Self.here, peers)
            #expect(options.notice == nil)
            let population = LoadPopulation(options)
            var held = Array(repeating: 0, count: options.sources)
            for peer in 0..<peers { held[population.source(ofPeer: peer)] += 1 }
            #expect(held.allSatisfy { $0 <= bound / 4 }, "\(peers) peers")
        }
    }

    @Test(arguments: elsewhere)
    func `elsewhere there is one address, and by default as many peers as a tracker takes of it`(
        _ target: SocketAddress
    ) {
        let plain = options(target)
        #expect(plain.sources == 1 && plain.peers == Limits().peersPerAddress)
        #expect(plain.notice == nil)
        #expect(throws: Never.self) { try plain.validate() }
        #expect(options(target, 1_000_000).sources == 1)
    }

    @Test func `too few addresses are told before the start, with the way out`() throws {
        let text = try #require(options(Self.elsewhere[0], 50_000).notice)
        #expect(text.hasPrefix("All 50,000 peers have one address, and a Swarmkeeper takes 20,000 peers of each"))
        #expect(text.contains("\"too many peers from your address\""))
        #expect(text.hasSuffix("with --limit-peers-per-address 50000, or have --peers 20000 at most."))
        let few = try #require(options(Self.here, 90_000, sources: 3).notice)
        #expect(few.hasPrefix("90,000 peers have 3 addresses"))
        #expect(few.hasSuffix("--limit-peers-per-address 30000, or have --peers 60000 at most."))
        #expect(options(Self.here, 60_000, sources: 3).notice == nil)
    }

    @Test func `more peers than one address has ports are refused in words`() {
        let error = #expect(throws: LoadError.self) { try options(Self.elsewhere[0], 100_000).validate() }
        #expect(
            error?.description == "This load cannot be run: one client address can be 1 to 64,512 peers (one a port "
                + "from 1,024 up); ask for fewer, or load from several hosts.")
    }
}
