import Client
import Datagrams
import Foundation
import Primitives
import Settings
import Testing
import Wire

/// The classic entry: all trackers hear a multicast group, and the master answers by unicast.
@Suite("Cluster: the group", .serialized)
struct ClusterGroupTests {
    /// Sends a request into a group, and takes all replies that come within a while after the first.
    private static func ask(_ group: SocketAddress, _ request: [UInt8], from client: ClientOfGroup) throws -> [(
        source: SocketAddress, bytes: [UInt8]
    )] {
        try client.send(request, to: group)
        return client.replies()
    }

    @Test
    func `exactly one answers what all have heard, from an address of its own`() async throws {
        // A port that nobody else has: bound by a socket first.
        let probe = try DatagramSocket(bind: loopback)
        let group = SocketAddress(ipv4: 0xEFC0_4D01, port: probe.address.port)
        let cluster = try TestCluster(
            TestCluster.patient.merging([.group: ["\(group)"], .interface: ["lo"]]) { $1 })
        var trackers: [RunningTracker] = []
        for id in 1...3 { trackers.append(try await cluster.start(id)) }
        for tracker in trackers { try await tracker.sees("there is a master") { $0.master == 3 && $0.isServing } }

        let client = try ClientOfGroup()
        var bytes: [UInt8] = []
        ConnectRequest(transactionID: TransactionID(7)).encode(into: &bytes)
        let connects = try Self.ask(group, bytes, from: client)
        #expect(connects.count == 1)
        let connect = try #require(connects.first)
        #expect(!connect.source.isGroup && connect.source.isLoopback)
        guard case .connect(_, let connectionID) = try TrackerReply(connect.bytes, isIPv6: false) else {
            Issue.record("a connect is answered with something else")
            return
        }
        bytes = []
        AnnounceRequest(
            connectionID: connectionID, transactionID: TransactionID(8), infoHash: infoHash(6),
            peerID: PeerID(Bytes20([UInt8](repeating: 1, count: 20))!), downloaded: 0, left: 0, uploaded: 0,
            event: .started, key: 1, numWant: -1, port: 2000
        ).encode(into: &bytes, urlData: [])
        let announces = try Self.ask(group, bytes, from: client)
        #expect(announces.count == 1)
        guard case .announce(_, let content) = try TrackerReply(try #require(announces.first).bytes, isIPv6: false)
        else {
            Issue.record("an announce is answered with something else")
            return
        }
        #expect(content.seeders == 1)
        for tracker in trackers { try await tracker.sees("all have applied it") { $0.commitIndex >= 2 } }
        for tracker in trackers.reversed() { try await tracker.stop() }
    }

    @Test
    func `a socket on all addresses hears the groups that it has joined, once, and no others`() throws {
        let sockets = try DatagramSockets(bind: [SocketAddress(ipv4: 0, port: 0)])
        let port = sockets.sockets[0].address.port
        let group = SocketAddress(ipv4: 0xEFC0_4D02, port: port)
        let other = SocketAddress(ipv4: 0xEFC0_4D03, port: port)
        try sockets.sockets[0].join(MulticastGroup(group, interface: "127.0.0.1"))
        // Somebody else on this host hears the other group.
        let neighbour = try DatagramSocket(bind: SocketAddress(ipv4: 0, port: 0))
        try neighbour.join(MulticastGroup(other, interface: "lo"))
        let client = try ClientOfGroup()
        try client.send([1], to: other)
        try client.send([2], to: group)
        let poller = try Poller()
        sockets.register(with: poller)
        _ = poller.wait(timeout: .seconds(120))
        var batch = DatagramBatch()
        #expect(sockets.receive(into: &batch, limit: 8) == 1)
        #expect(batch.payload(0) == [2])
        // What it is answered from.
        #expect(batch.datagrams[0].local == SocketAddress(ipv4: 0x7F00_0001, port: port))
        #expect(poller.wait(timeout: .milliseconds(50)).isEmpty)
    }

    @Test
    func `an interface that there is not is named in the error`() throws {
        let group = MulticastGroup(SocketAddress(ipv4: 0xEFC0_4D04, port: 4000), interface: "nowhere0")
        let error = #expect(throws: SocketError.self) { _ = try DatagramSockets(bind: [], groups: [group]) }
        #expect(
            error?.description
                == "Cannot hear the group 239.192.77.4:4000 on the network interface nowhere0: this host has no such "
                + "interface, or none for groups. `ip address` lists the interfaces and their addresses; name one that "
                + "is up, or make a route to the group.")
    }
}

/// A client that sends to groups over loopback.
final class ClientOfGroup {
    private let descriptor: Int32

    init() throws {
        descriptor = socket(AF_INET, Int32(SOCK_DGRAM.rawValue), 0)
        try #require(descriptor >= 0)
        var interface = in_addr(s_addr: UInt32(0x7F00_0001).bigEndian)
        setsockopt(descriptor, Int32(IPPROTO_IP), IP_MULTICAST_IF, &interface, socklen_t(MemoryLayout<in_addr>.size))
        let result = loopback.withRaw { bind(descriptor, $0, $1) }
        try #require(result == 0)
    }

    deinit { close(descriptor) }

    func send(_ bytes: [UInt8], to group: SocketAddress) throws {
        let sent = group.withRaw { sendto(descriptor, bytes, bytes.count, 0, $0, $1) }
        try #require(sent == bytes.count)
    }

    /// The first reply, and what else comes in the quarter of a second after it.
    func replies() -> [(source: SocketAddress, bytes: [UInt8])] {
        var replies: [(source: SocketAddress, bytes: [UInt8])] = []
        while true {
            var waited = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
            guard poll(&waited, 1, replies.isEmpty ? Waiting.mostMilliseconds : 250) > 0 else { return replies }
            var bytes = [UInt8](repeating: 0, count: 2048)
            var name = [UInt8](repeating: 0, count: 16)
            var length = socklen_t(name.count)
            let count = name.withUnsafeMutableBytes { raw in
                recvfrom(
                    descriptor, &bytes, bytes.count, 0, raw.baseAddress!.assumingMemoryBound(to: sockaddr.self), &length
                )
            }
            let source = SocketAddress(
                ipv4: name[4..<8].reduce(0) { $0 << 8 | UInt32($1) }, port: UInt16(name[2]) << 8 | UInt16(name[3]))
            replies.append((source, Array(bytes.prefix(max(count, 0)))))
        }
    }
}

extension SocketAddress {
    /// As the system's calls want an IPv4 address: the layout of sockaddr_in.
    fileprivate func withRaw<Result>(_ body: (UnsafePointer<sockaddr>, socklen_t) -> Result) -> Result {
        var bytes: [UInt8] = []
        withUnsafeBytes(of: UInt16(AF_INET)) { bytes.append(contentsOf: $0) }
        bytes.append(bigEndian: port)
        bytes.append(bigEndian: ipv4)
        bytes += [UInt8](repeating: 0, count: 8)
        return bytes.withUnsafeBytes {
            body($0.baseAddress!.assumingMemoryBound(to: sockaddr.self), socklen_t($0.count))
        }
    }
}
