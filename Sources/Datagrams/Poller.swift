// Waits for datagrams, for a deadline, or to be woken by another thread.

import Glibc
import Primitives

/// Waits for datagrams, for a deadline, or to be woken by another thread; whichever comes first.
///
/// `ppoll` and a pipe instead of `epoll` and an `eventfd`: Swift's Glibc module shows neither of those, `ppoll` counts
/// its time-out in nanoseconds where `epoll_wait` counts milliseconds, and for the handful of sockets that a server
/// has it is no slower. One thread owns the poller; its `Waker` is for all the others.
public final class Poller {
    /// A `ReadySet` has one bit a socket.
    static let maxSocketCount = 64

    /// Wakes this poller, from any thread.
    public let waker: Waker
    /// The pipe first, then the sockets.
    private let entries: UnsafeMutablePointer<pollfd>
    private var count = 1
    /// The index of each socket, in the order of `entries`; the sockets themselves, so that none is closed meanwhile.
    private var indexes: [Int] = []
    private var sockets: [DatagramSocket] = []

    /// A poller that waits for nothing but wake-ups yet.
    ///
    /// - Throws: `SocketError` where the process has too many open files.
    public init() throws(SocketError) {
        waker = try Waker()
        entries = .allocate(capacity: 1 + Self.maxSocketCount)
        entries.initialize(repeating: pollfd(), count: 1 + Self.maxSocketCount)
        entries[0] = pollfd(fd: waker.readEnd, events: Int16(POLLIN), revents: 0)
    }

    deinit { entries.deallocate() }

    /// Waits for a socket, too.
    ///
    /// - Parameters:
    ///   - socket: kept open by the poller.
    ///   - index: 0…63, what stands for the socket in a `ReadySet`; each is used once.
    public func add(_ socket: DatagramSocket, index: Int) {
        precondition((0..<Self.maxSocketCount).contains(index), "a poller has the indexes 0 to 63")
        precondition(!indexes.contains(index), "a poller's index stands for one socket")
        entries[count] = pollfd(fd: socket.descriptor, events: Int16(POLLIN), revents: 0)
        indexes.append(index)
        sockets.append(socket)
        count += 1
    }

    /// Waits until there is something to receive, or `wake` was called since the last wait, or the time is over.
    ///
    /// - Parameters:
    ///   - timeout: nil waits as long as it takes; zero and less do not wait at all.
    ///   - ignoringSockets: waits for wake-ups and the time alone; what arrives stays in the kernel's buffers.
    /// - Returns: what is ready; nothing where the time is over, or a signal came.
    public func wait(timeout: Duration?, ignoringSockets: Bool = false) -> ReadySet {
        let count = nfds_t(ignoringSockets ? 1 : self.count)
        let result: CInt
        if let timeout {
            let nanoseconds = max(0, timeout.nanoseconds)
            var time = timespec(
                tv_sec: Int(nanoseconds / 1_000_000_000), tv_nsec: Int(nanoseconds % 1_000_000_000))
            result = ppoll(entries, count, &time, nil)
        } else {
            result = ppoll(entries, count, nil, nil)
        }
        var ready = ReadySet()
        guard result > 0 else { return ready }
        if entries[0].revents != 0 {
            waker.drain()
            ready.isWoken = true
        }
        for entry in 1..<Int(count) where entries[entry].revents != 0 { ready.insert(indexes[entry - 1]) }
        return ready
    }

    /// Ends a wait; see `Waker.wake`.
    public func wake() { waker.wake() }
}

/// Which sockets have something to receive, and whether somebody woke the poller.
public struct ReadySet: Sendable, Hashable {
    private var bits: UInt64 = 0
    /// Whether `Waker.wake` was called since the wait before.
    public fileprivate(set) var isWoken = false

    /// No socket, and nobody has woken the poller.
    public init() {}

    /// Every socket: for receiving without having waited.
    public static let all = {
        var set = ReadySet()
        set.bits = .max
        return set
    }()

    /// Whether the time is over, or a signal came: no socket is ready, and nobody woke the poller.
    public var isEmpty: Bool { bits == 0 && !isWoken }

    /// Whether the socket with this index, 0…63, has something to receive.
    public func contains(_ index: Int) -> Bool { bits &>> UInt64(index) & 1 == 1 }

    mutating func insert(_ index: Int) { bits |= 1 &<< UInt64(index) }
}

/// Ends a poller's wait.
///
/// A wake-up that comes while nobody waits ends the next wait; several of them count as one.
public final class Waker: Sendable {
    let readEnd: CInt
    private let writeEnd: CInt

    init() throws(SocketError) {
        var ends: (CInt, CInt) = (-1, -1)
        let result = withUnsafeMutableBytes(of: &ends) {
            pipe2($0.assumingMemoryBound(to: CInt.self).baseAddress!, O_NONBLOCK | O_CLOEXEC)
        }
        guard result == 0 else { throw SocketError(.poll, code: errno) }
        (readEnd, writeEnd) = ends
    }

    deinit {
        close(readEnd)
        close(writeEnd)
    }

    /// May be called from any thread, and as often as one likes: never blocks.
    public func wake() {
        var byte: UInt8 = 1
        // A full pipe has woken the poller already.
        while write(writeEnd, &byte, 1) < 0, errno == EINTR {}
    }

    /// Takes the wake-ups out of the pipe, so that they end no further wait.
    func drain() {
        withUnsafeTemporaryAllocation(byteCount: 4096, alignment: 1) { room in
            while read(readEnd, room.baseAddress, room.count) == room.count {}
        }
    }
}
