import Foundation
import Glibc
import Primitives
import Synchronization

/// A tracker that answers as a test tells it, on a port of 127.0.0.1, for as long as it lives.
final class FakeTracker: Sendable {
    let port: UInt16
    private let descriptor: CInt
    private let isStopped = Atomic(false)

    /// A UDP tracker.
    ///
    /// `answer` makes the datagrams of an answer from the number of a datagram, counted from 0, and its bytes.
    static func udp(_ answer: @escaping @Sendable (Int, [UInt8]) -> [[UInt8]]) throws -> FakeTracker {
        let tracker = try FakeTracker(SOCK_DGRAM)
        tracker.onThread { tracker in
            var number = 0
            while let (datagram, sender, length) = tracker.receive() {
                var sender = sender
                for reply in answer(number, datagram) {
                    _ = withUnsafePointer(to: &sender) { pointer in
                        pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                            sendto(tracker.descriptor, reply, reply.count, 0, $0, length)
                        }
                    }
                }
                number += 1
            }
        }
        return tracker
    }

    /// An HTTP server that closes after each answer.
    ///
    /// `answer` makes the parts of an answer, which go out 20 ms apart, from the head of a request.
    static func http(_ answer: @escaping @Sendable (String) -> [String]) throws -> FakeTracker {
        try http { request in answer(request).map { Array($0.utf8) } }
    }

    static func http(_ answer: @escaping @Sendable (String) -> [[UInt8]]) throws -> FakeTracker {
        let tracker = try FakeTracker(SOCK_STREAM)
        guard listen(tracker.descriptor, 16) == 0 else { throw Failure(code: errno) }
        tracker.onThread { tracker in
            while tracker.isReadable() {
                let connection = accept(tracker.descriptor, nil, nil)
                guard connection >= 0 else { continue }
                var request: [UInt8] = []
                var byte: UInt8 = 0
                while !request.suffix(4).elementsEqual("\r\n\r\n".utf8), recv(connection, &byte, 1, 0) == 1 {
                    request.append(byte)
                }
                for part in answer(String(decoding: request, as: UTF8.self)) {
                    _ = send(connection, part, part.count, CInt(MSG_NOSIGNAL))
                    usleep(20_000)
                }
                close(connection)
            }
        }
        return tracker
    }

    struct Failure: Error {
        var code: CInt
    }

    private init(_ kind: __socket_type) throws {
        descriptor = socket(AF_INET, CInt(kind.rawValue), 0)
        var name = sockaddr_in()
        name.sin_family = sa_family_t(AF_INET)
        name.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let descriptor = descriptor
        let result = withUnsafeMutablePointer(to: &name) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { name in
                bind(descriptor, name, length) == 0 ? getsockname(descriptor, name, &length) : -1
            }
        }
        guard result == 0 else { throw Failure(code: errno) }
        port = UInt16(bigEndian: name.sin_port)
    }

    /// Ends the thread, which closes the socket.
    func stop() { isStopped.store(true, ordering: .relaxed) }

    private func onThread(_ body: @escaping @Sendable (FakeTracker) -> Void) {
        Thread.detachNewThread { [self] in
            body(self)
            close(descriptor)
        }
    }

    private func isReadable() -> Bool {
        while !isStopped.load(ordering: .relaxed) {
            var polled = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
            if poll(&polled, 1, 20) > 0 { return true }
        }
        return false
    }

    private func receive() -> ([UInt8], sockaddr_in, socklen_t)? {
        guard isReadable() else { return nil }
        var name = sockaddr_in()
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        var buffer = [UInt8](repeating: 0, count: 4096)
        let descriptor = descriptor
        let count = withUnsafeMutablePointer(to: &name) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                recvfrom(descriptor, &buffer, buffer.count, 0, $0, &length)
            }
        }
        return count < 0 ? nil : (Array(buffer[..<count]), name, length)
    }
}

/// What the handlers of a fake saw.
final class Seen<Value: Sendable>: Sendable {
    private let values = Mutex<[Value]>([])

    func add(_ value: Value) { values.withLock { $0.append(value) } }

    var all: [Value] { values.withLock { $0 } }
}
