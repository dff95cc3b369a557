// The raw sockets, over loopback only.

import Datagrams
import Foundation
import Primitives
import Testing

@Suite("Datagrams over loopback")
struct DatagramTests {
    static let loopback = SocketAddress(ipv4: 0x7F00_0001, port: 0)
    static let loopback6 = SocketAddress(high: 0, low: 1, port: 0)

    /// Receives until so many datagrams are there, or half a minute is over: the host may be busy.
    private func receive(_ count: Int, on sockets: DatagramSockets, limit: Int = 64) throws -> [Received] {
        let poller = try Poller()
        sockets.register(with: poller)
        var batch = DatagramBatch()
        var result: [Received] = []
        let end = Clock.monotonic() + .seconds(30)
        while result.count < count, Clock.monotonic() < end {
            let ready = poller.wait(timeout: .milliseconds(100))
            sockets.receive(into: &batch, limit: limit, from: ready)
            for index in batch.datagrams.indices {
                result.append(Received(datagram: batch.datagrams[index], payload: batch.payload(index)))
            }
        }
        return result
    }

    private struct Received {
        var datagram: Datagram
        var payload: [UInt8]
    }

    private func sockets(_ addresses: SocketAddress...) throws -> DatagramSockets {
        try DatagramSockets(bind: addresses)
    }

    @Test(arguments: [loopback, loopback6])
    func `what is sent arrives, and says where from`(_ address: SocketAddress) throws {
        let server = try sockets(address)
        let client = try sockets(address)
        #expect(server.sockets[0].address.port != 0)
        #expect(server.sockets[0].address.host == address.host)

        var batch = DatagramBatch()
        batch.append([1, 2, 3], remote: server.sockets[0].address)
        batch.append([], remote: server.sockets[0].address)
        client.send(batch)

        let received = try receive(2, on: server)
        #expect(received.map(\.payload) == [[1, 2, 3], []])
        #expect(received.allSatisfy { $0.datagram.remote == client.sockets[0].address })
        #expect(received.allSatisfy { $0.datagram.local == .unspecified })
        #expect(client.counters.sent == 2)
        #expect(server.counters.received == 2)
    }

    @Test(arguments: ["0.0.0.0", "::"])
    func `a wildcard socket answers from the address that was asked`(_ host: String) throws {
        let server = try sockets(try #require(SocketAddress(host: host, port: 0)))
        let isIPv4 = host == "0.0.0.0"
        let client = try sockets(isIPv4 ? Self.loopback : Self.loopback6)
        var asked = try #require(SocketAddress(host: isIPv4 ? "127.0.0.2" : "::1", port: 0))
        asked.port = server.sockets[0].address.port

        var batch = DatagramBatch()
        batch.append([7], remote: asked)
        client.send(batch)
        let request = try #require(try receive(1, on: server).first).datagram
        #expect(request.local == asked)

        batch.removeAll()
        batch.append([8], remote: request.remote, local: request.local)
        server.send(batch)
        let reply = try #require(try receive(1, on: client).first)
        #expect(reply.payload == [8])
        #expect(reply.datagram.remote == asked)
    }

    @Test func `five hundred datagrams arrive in order, in batches that keep their memory`() throws {
        let server = try sockets(Self.loopback)
        let client = try sockets(Self.loopback)
        var batch = DatagramBatch()
        for number in 0..<500 {
            batch.append([UInt8(number >> 8), UInt8(number & 255)], remote: server.sockets[0].address)
        }
        client.send(batch)
        let received = try receive(500, on: server, limit: 200)
        #expect(received.map { Int($0.payload[0]) << 8 | Int($0.payload[1]) } == Array(0..<500))
    }

    @Test func `a batch has one slot a datagram, and receiving again takes no new memory`() throws {
        let server = try sockets(Self.loopback)
        let client = try sockets(Self.loopback)
        var sent = DatagramBatch()
        for _ in 0..<3 { sent.append([9, 9], remote: server.sockets[0].address) }
        var batch = DatagramBatch()
        var bases: Set<UnsafeRawPointer> = []
        for _ in 0..<3 {
            client.send(sent)
            #expect(server.receive(into: &batch, limit: 8) == 3)
            #expect(batch.bytes.count == 8 * DatagramSocket.slotByteCount)
            #expect(batch.datagrams.map(\.offset) == [0, 2048, 4096])
            batch.bytes.withUnsafeBytes { _ = bases.insert($0.baseAddress!) }
        }
        #expect(bases.count == 1)
        #expect(server.receive(into: &batch, limit: 8) == 0)
        #expect(batch.isEmpty)
    }

    @Test func `a datagram that is longer than a slot is dropped and counted`() throws {
        let server = try sockets(Self.loopback)
        let client = try sockets(Self.loopback)
        let address = server.sockets[0].address
        var batch = DatagramBatch()
        batch.append(Array(repeating: 1, count: 2049), remote: address)
        batch.append(Array(repeating: 2, count: 2048), remote: address)
        client.send(batch)
        let received = try receive(1, on: server)
        #expect(received.map(\.payload) == [Array(repeating: 2, count: 2048)])
        #expect(server.counters.truncated == 1)
    }

    @Test func `one datagram that cannot be sent does not stop the others`() throws {
        let server = try sockets(Self.loopback)
        let client = try sockets(Self.loopback)
        let address = server.sockets[0].address
        var batch = DatagramBatch()
        batch.append([1], remote: address)
        batch.append(Array(repeating: 0, count: 65_535), remote: address)  // longer than IPv4 allows
        batch.append([2], remote: SocketAddress(high: 0, low: 1, port: 9))  // the other family
        batch.append([3], remote: SocketAddress(ipv4: 0x7F00_0001, port: 0))  // port 0 cannot be reached
        batch.append([4], remote: address)
        client.send(batch)
        #expect(try receive(2, on: server).map(\.payload) == [[1], [4]])
        let counters = client.counters
        #expect(counters.sent == 2)
        #expect(counters.tooLong == 1)
        #expect(counters.unreachable == 1)
        #expect(counters.failed == 1)
        #expect(counters.unsent == 3)
    }

    @Test func `a mixed batch leaves from the sockets that it names`() throws {
        let server = try sockets(Self.loopback, Self.loopback6)
        let client = try sockets(Self.loopback, Self.loopback6)
        var batch = DatagramBatch()
        for (number, socket) in [0, 0, 1, 0, 1, 1].enumerated() {
            batch.append([UInt8(number)], remote: server.sockets[socket].address, socket: UInt16(socket))
        }
        client.send(batch)
        let received = try receive(6, on: server)
        for socket in 0...1 {
            let own = received.filter { $0.datagram.socket == socket }
            #expect(own.map(\.payload) == (socket == 0 ? [[0], [1], [3]] : [[2], [4], [5]]))
            #expect(own.allSatisfy { $0.datagram.remote == client.sockets[socket].address })
        }
    }

    @Test func `a flooded socket does not starve another`() throws {
        let server = try sockets(Self.loopback, Self.loopback)
        let client = try sockets(Self.loopback)
        var sent = DatagramBatch()
        for _ in 0..<20 { sent.append([1], remote: server.sockets[0].address) }
        sent.append([2], remote: server.sockets[1].address)
        client.send(sent)
        var batch = DatagramBatch()
        var turns: [UInt16] = []
        for _ in 0..<2 {
            server.receive(into: &batch, limit: 4)
            turns += batch.datagrams.map(\.socket)
        }
        #expect(turns.contains(1))
    }

    @Test func `another thread ends a wait`() throws {
        let poller = try Poller()
        let waker = poller.waker
        Thread.detachNewThread {
            Thread.sleep(forTimeInterval: 0.02)
            waker.wake()
        }
        #expect(poller.wait(timeout: .seconds(60)).isWoken)
    }

    @Test func `wake-ups while nobody waits end the next wait, and only that one`() throws {
        let poller = try Poller()
        for _ in 0..<3 { poller.wake() }
        #expect(poller.wait(timeout: .seconds(60)).isWoken)
        #expect(poller.wait(timeout: .zero).isEmpty)
    }

    @Test func `a wait lasts as long as its time-out, less than a millisecond too`() throws {
        let poller = try Poller()
        let start = Clock.monotonic()
        let ready = poller.wait(timeout: .microseconds(300))
        let elapsed = Clock.monotonic() - start
        #expect(ready.isEmpty)
        #expect(elapsed >= .microseconds(300))
    }

    @Test func `a port in use is named, with the way to find who holds it`() throws {
        let holder = try sockets(Self.loopback)
        let address = holder.sockets[0].address
        let error = #expect(throws: SocketError.self) { try DatagramSocket(bind: address) }
        #expect(error?.code == EADDRINUSE)
        let text = error?.description ?? ""
        #expect(text.hasPrefix("Cannot listen for UDP on \(address): the port is in use."))
        #expect(text.contains("ss -ulpn 'sport = :\(address.port)'"))
        #expect(text.contains("choose another port"))
    }

    @Test func `an address of another host is refused with the list of ours`() throws {
        let foreign = SocketAddress(ipv4: 0xC633_6401, port: 6969)  // 198.51.100.1: TEST-NET-2
        let error = #expect(throws: SocketError.self) { try DatagramSocket(bind: foreign) }
        #expect(error?.code == EADDRNOTAVAIL)
        #expect(error?.description.contains("this host has no such address") == true)
        #expect(error?.description.contains("ip address") == true)
    }

    @Test func `every reason says what to do`() {
        let low = SocketError(.bind, address: SocketAddress(ipv4: 0x7F00_0001, port: 80), code: EACCES)
        #expect(low.description.contains("CAP_NET_BIND_SERVICE"))
        let high = SocketError(.bind, address: SocketAddress(ipv4: 0x7F00_0001, port: 6969), code: EACCES)
        #expect(!high.description.contains("CAP_NET_BIND_SERVICE"))
        let family = SocketError(.open, address: Self.loopback6, code: EAFNOSUPPORT)
        #expect(family.description.hasPrefix("Cannot open a UDP socket for [::1]:0: IPv6 is not available"))
        let other = SocketError(.configure("IP_PKTINFO"), address: Self.loopback, code: EIO)
        #expect(other.description.contains("(error 5)"))
    }

    @Test func `the buffers are as large as the kernel allows`() throws {
        let socket = try DatagramSocket(bind: Self.loopback)
        #expect(socket.receiveBufferByteCount >= 64 << 10)
        #expect(socket.sendBufferByteCount >= 64 << 10)
    }

    @Test func `what the kernel lost for want of room is known`() throws {
        var options = DatagramSocket.Options()
        options.receiveBufferByteCount = 4096
        let server = try DatagramSocket(bind: Self.loopback, options: options)
        let client = try DatagramSocket(bind: Self.loopback)
        var batch = DatagramBatch()
        for _ in 0..<200 { batch.append(Array(repeating: 0, count: 1000), remote: server.address) }
        client.send(batch)
        var received = DatagramBatch()
        server.receive(into: &received, limit: 200)
        #expect(server.lostByKernel > 0)
        #expect(UInt64(received.datagrams.count) + server.lostByKernel == 200)
    }

    @Test func `the clocks run`() {
        let first = Clock.read()
        let second = Clock.read()
        #expect(second.monotonic >= first.monotonic)
        #expect(second.wall.milliseconds > 1_700_000_000_000)
        #expect(Clock.threadTime() > .zero)
    }
}
