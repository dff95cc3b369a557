import Datagrams
import Foundation
import PeerLogic
import Primitives
import Synchronization
import Torrents
import Transfers
import Wire

/// What an engine has told, for tests that wait for it.
final class Told: Sendable {
    private let events = Mutex<[TransferEvent]>([])

    func take(_ event: TransferEvent) { events.withLock { $0.append(event) } }

    /// The first event that fits.
    func first<Value>(_ pick: (TransferEvent) -> Value?) -> Value? {
        for event in events.withLock({ $0 }) {
            if let value = pick(event) { return value }
        }
        return nil
    }

    func count(_ fits: (TransferEvent) -> Bool) -> Int { events.withLock { $0.count { fits($0) } } }

    /// How many pieces were found at the latest check.
    var checked: Int? {
        events.withLock { events in
            for case .checked(_, let have, _) in events.reversed() { return have }
            return nil
        }
    }
}

/// An engine with a port on loopback, and what it has told.
struct TestEngine {
    let engine: TransferEngine
    let told = Told()

    init() throws {
        var options = EngineOptions()
        options.listenAddresses = [SocketAddress(ipv4: 0x7F00_0001, port: 0)]
        let told = told
        engine = try TransferEngine(options) { told.take($0) }
    }

    func address() async -> SocketAddress { await engine.listenAddresses()[0] }
}

enum TestTorrent {
    /// Bytes that look random and are the same for the same seed.
    static func bytes(_ count: Int, seed: UInt64) -> [UInt8] {
        var random = RandomStream(seed: seed)
        return [UInt8](unsafeUninitializedCapacity: count) { buffer, used in
            for index in 0..<count { buffer[index] = UInt8(truncatingIfNeeded: random.next()) }
            used = count
        }
    }

    /// Writes files of these sizes below `name`, and makes their torrent.
    static func make(_ name: String, sizes: [Int], pieceLength: Int, in directory: TemporaryDirectory) throws -> [UInt8] {
        for (index, size) in sizes.enumerated() {
            _ = try directory.write("\(name)/\(path(index))", bytes(size, seed: UInt64(index)))
        }
        var maker = TorrentMaker(path: directory.path(name))
        maker.pieceLength = pieceLength
        return try maker.make().metainfo.bytes
    }

    /// Every third file is in a directory of its own.
    static func path(_ index: Int) -> String { index % 3 == 2 ? "deep \(index)/below/file" : "file \(index)" }
}
