// Whole runs of the load generator against a small false tracker.

import Datagrams
import Foundation
import LoadGenerator
import Primitives
import Testing

@Suite("Load: whole runs on loopback", .serialized)
struct LoadRunTests {
    /// Answers as a tracker does, and loses every third announce that it has not heard before.
    private final class FalseTracker: @unchecked Sendable {
        let address: SocketAddress
        private let waker: Waker
        private let lock = NSLock()
        private var heard: [[UInt8]: Int] = [:]
        private var isStopped = false

        /// How often each (info hash, peer id) was heard.
        var announces: [[UInt8]: Int] { lock.withLock { heard } }

        init(isSilent: Bool = false) throws {
            let socket = try DatagramSocket(bind: SocketAddress(ipv4: 0x7F00_0001, port: 0))
            let poller = try Poller()
            poller.add(socket, index: 0)
            (address, waker) = (socket.address, poller.waker)
            let box = Box(socket, poller)
            Thread.detachNewThread { [self] in
                var requests = DatagramBatch()
                var replies = DatagramBatch()
                while !lock.withLock({ isStopped }) {
                    _ = box.poller.wait(timeout: .seconds(1))
                    box.socket.receive(into: &requests, limit: 64)
                    replies.removeAll()
                    for index in requests.datagrams.indices where !isSilent {
                        let reply = answer(requests.payload(index))
                        if !reply.isEmpty { replies.append(reply, remote: requests.datagrams[index].remote) }
                    }
                    box.socket.send(replies)
                }
            }
        }

        private struct Box: @unchecked Sendable {
            let socket: DatagramSocket
            let poller: Poller

            init(_ socket: DatagramSocket, _ poller: Poller) { (self.socket, self.poller) = (socket, poller) }
        }

        func stop() {
            lock.withLock { isStopped = true }
            waker.wake()
        }

        private func answer(_ request: [UInt8]) -> [UInt8] {
            let (action, transaction) = (request[11], Array(request[12..<16]))
            switch action {
            case 0: return [0, 0, 0, 0] + transaction + [9, 9, 9, 9, 9, 9, 9, 9]
            case 1:
                guard Array(request[..<8]) == [9, 9, 9, 9, 9, 9, 9, 9] else { return [0, 0, 0, 3] + transaction }
                let count = lock.withLock {
                    heard[Array(request[16..<56]), default: 0] += 1
                    return heard.count
                }
                if count.isMultiple(of: 3), lock.withLock({ heard[Array(request[16..<56])] }) == 1 { return [] }
                return [0, 0, 0, 1] + transaction + [UInt8](repeating: 0, count: 12) + [10, 0, 0, 1, 0, 80]
            default: return [0, 0, 0, 2] + transaction + [UInt8](repeating: 0, count: 48)
            }
        }
    }

    @Test func `a fill reaches every peer, and asks again where no answer came`() throws {
        let tracker = try FalseTracker()
        defer { tracker.stop() }
        var options = LoadOptions(target: tracker.address)
        options.work = .fill
        (options.torrents, options.peers) = (10, 300)
        options.patience = .milliseconds(100)
        options.duration = .seconds(120)
        let report = try LoadGenerator(options).run()
        #expect(report.answered == 300)
        #expect(report.lost == 0)
        #expect(report.resent >= 50)
        #expect(report.sent == 300 + report.resent)
        #expect(tracker.announces.count == 300)
        #expect(report.meanPeersPerReply == 1)
    }

    @Test func `an open loop sends at its rate, and books every request`() throws {
        let tracker = try FalseTracker()
        defer { tracker.stop() }
        var options = LoadOptions(target: tracker.address)
        options.pace = .open(rate: 500)
        (options.duration, options.warmUp, options.peers) = (.milliseconds(500), .milliseconds(100), 50)
        options.patience = .seconds(2)
        let report = try LoadGenerator(options).run()
        #expect(report.sent + report.unsent == 250)
        #expect(report.answered + report.lost == report.sent)
        #expect(report.wrong.total == 0)
        #expect(report.errors == 0)
        #expect(report.latencyMicroseconds.p50 > 0)
        #expect(report.latencyMicroseconds.p50 <= report.latencyMicroseconds.max)
    }

    @Test func `who answers nothing is reported as silent, in bounded time`() throws {
        let tracker = try FalseTracker(isSilent: true)
        defer { tracker.stop() }
        let options = LoadOptions(target: tracker.address)
        let error = #expect(throws: LoadError.self) { try LoadGenerator(options).run() }
        #expect(error == .silent(tracker.address))
        #expect(error?.description.contains("\(tracker.address)") == true)
    }
}
