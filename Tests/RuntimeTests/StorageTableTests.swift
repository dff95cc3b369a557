// The tables and views for people: they say what the snapshot says, soon after it does.

import Foundation
import GRDB
import Primitives
import Storage
import Testing
import TrackerLogic
import Wire

@Suite(.ownThreads) struct StorageTableTests {
    private let library = ChunkLibrary()

    private func hexadecimal(_ byte: UInt8) -> String { "\(StorageTest.bytes20(byte))" }

    @Test func `a saved shard shows in the tables`() throws {
        try StorageTest.inDirectory { directory in
            let store = try OpenStore(directory, options: library.options)
            let swarms = [
                StorageTest.swarm(
                    0xA1, completed: 7,
                    [
                        StorageTest.peer("192.0.2.9", left: .max, downloaded: 5, lastSeen: 60),
                        StorageTest.peer("2001:db8::1", port: 65_535, left: 0, downloaded: 10, isCounted: true),
                        StorageTest.peer("192.0.2.9", port: 1, left: 0),
                    ]),
                StorageTest.swarm(0xA2, completed: .max, []),
            ]
            store.write(.saveChunk(library.shard(3, index: 1, swarms)))
            #expect(store.waitForTables())
            #expect(
                try StorageTest.query(store.store, "SELECT info_hash, completed, chunk FROM swarms ORDER BY info_hash")
                    == ["\(hexadecimal(0xA1))|7|3", "\(hexadecimal(0xA2))|4294967295|3"])
            let id = hexadecimal(0x2D)
            #expect(
                try StorageTest.query(
                    store.store,
                    """
                    SELECT address, port, peer_id, downloaded, left, last_seen, is_counted FROM peers
                    ORDER BY address, port
                    """)
                    == [
                        "192.0.2.9|1|\(id)|0|0|1|0", "192.0.2.9|6881|\(id)|5|\(Int64.max)|60|0",
                        "2001:db8::1|65535|\(id)|10|0|1|1",
                    ])
            store.close()
        }
    }

    @Test func `the classic views count seeders and leechers`() throws {
        try StorageTest.inDirectory { directory in
            let store = try OpenStore(directory, options: library.options)
            store.write(
                .saveChunk(
                    library.registry(
                        index: 1,
                        RegistryImage(
                            access: AccessRules(),
                            torrents: [
                                RegisteredTorrent(
                                    infoHash: InfoHash(StorageTest.bytes20(0xB1)), name: "Debian “12”",
                                    byteCount: 4_000_000_000),
                                RegisteredTorrent(
                                    infoHash: InfoHash(StorageTest.bytes20(0xB9)), name: "", byteCount: .max),
                            ]))),
                .saveChunk(
                    library.shard(
                        1, index: 1,
                        [
                            StorageTest.swarm(
                                0xB1, completed: 2,
                                [
                                    StorageTest.peer("192.0.2.1"), StorageTest.peer("192.0.2.2", left: 3),
                                    StorageTest.peer("192.0.2.3", left: 4, downloaded: 1, lastSeen: 86_400),
                                ])
                        ])),
                .saveChunk(
                    library.shard(2, index: 1, [StorageTest.swarm(0xB2, [StorageTest.peer("192.0.2.1")])])))
            #expect(store.waitForTables())
            let (first, second, id) = (hexadecimal(0xB1), hexadecimal(0xB2), hexadecimal(0x2D))
            let expected = [
                "SELECT info_hash, name, size, seeders, leechers, completed FROM SWARM ORDER BY info_hash": [
                    "\(first)|Debian “12”|4000000000|1|2|2", "\(second)|–|–|1|0|0",
                ],
                "SELECT info_hash, name, size FROM CONTENTS ORDER BY info_hash": [
                    "\(first)|Debian “12”|4000000000", "\(hexadecimal(0xB9))||\(Int64.max)",
                ],
                "SELECT peer_id, address, port, last_seen, swarms FROM PEER ORDER BY address": [
                    "\(id)|192.0.2.1|6881|1|2", "\(id)|192.0.2.2|6881|1|1", "\(id)|192.0.2.3|6881|86400|1",
                ],
                "SELECT info_hash, address, port, role FROM SWARM_PEERS ORDER BY info_hash, address": [
                    "\(first)|192.0.2.1|6881|seeder", "\(first)|192.0.2.2|6881|leecher",
                    "\(first)|192.0.2.3|6881|leecher", "\(second)|192.0.2.1|6881|seeder",
                ],
                "SELECT name, address, port, downloaded, left, last_seen FROM PEER_INFO WHERE downloaded > 0": [
                    "Debian “12”|192.0.2.3|6881|1|4|1970-01-02 00:00:00"
                ],
            ]
            for (sql, rows) in expected { #expect(try StorageTest.query(store.store, sql) == rows) }
            store.close()
        }
    }

    @Test func `a chunk that is saved again replaces its rows and no others`() throws {
        try StorageTest.inDirectory { directory in
            let store = try OpenStore(directory, options: library.options)
            let other = library.shard(8, index: 1, [StorageTest.swarm(0xC9, [StorageTest.peer("192.0.2.200")])])
            store.write(
                .saveChunk(other),
                .saveChunk(
                    library.shard(
                        7, index: 1,
                        [
                            StorageTest.swarm(0xC1, [StorageTest.peer("192.0.2.1"), StorageTest.peer("192.0.2.2")]),
                            StorageTest.swarm(0xC2, [StorageTest.peer("192.0.2.3")]),
                        ])))
            #expect(store.waitForTables())
            let id = "SELECT id FROM swarms WHERE info_hash = X'\(hexadecimal(0xC2))'"
            let idBefore = try StorageTest.query(store.store, id)
            store.write(
                .saveChunk(
                    library.shard(
                        7, index: 2,
                        [
                            StorageTest.swarm(0xC2, completed: 1, [StorageTest.peer("192.0.2.4")]),
                            StorageTest.swarm(0xC3, [StorageTest.peer("192.0.2.1", left: 1)]),
                        ])))
            #expect(store.waitForTables())
            let rows = """
                SELECT info_hash, address, left FROM swarms JOIN peers ON swarm = id ORDER BY info_hash, address
                """
            #expect(
                try StorageTest.query(store.store, rows) == [
                    "\(hexadecimal(0xC2))|192.0.2.4|0", "\(hexadecimal(0xC3))|192.0.2.1|1",
                    "\(hexadecimal(0xC9))|192.0.2.200|0",
                ])
            #expect(try StorageTest.query(store.store, "SELECT count(*) FROM swarms") == ["3"])
            // A swarm keeps its id, and nobody inherits one whose peers may still be there.
            #expect(try StorageTest.query(store.store, id) == idBefore)
            store.close()
        }
    }

    @Test func `a large shard that shrinks and grows is followed`() throws {
        try StorageTest.inDirectory { directory in
            let store = try OpenStore(directory, options: library.options)
            var random = RandomStream(seed: 11)
            for (round, count) in [3_000, 700, 0, 1_500].enumerated() {
                var swarms: [SwarmImage] = []
                var expected: Set<String> = []
                for number in 0..<6 {
                    var peers: [PeerImage] = []
                    for _ in 0..<(number == 0 ? count : random.below(200)) {
                        let host = "10.\(number).\(random.below(12)).\(random.below(256))"
                        let peer = StorageTest.peer(
                            host, port: UInt16(1 + random.below(3)), left: random.next() >> 2,
                            lastSeen: UInt32(truncatingIfNeeded: random.next()))
                        if peers.contains(where: { $0.address == peer.address }) { continue }
                        peers.append(peer)
                        expected.insert("\(number)|\(host)|\(peer.address.port)|\(peer.left)|\(peer.lastSeen)")
                    }
                    swarms.append(StorageTest.swarm(UInt8(number), peers))
                }
                store.write(.saveChunk(library.shard(5, index: UInt64(round), swarms)))
                #expect(store.waitForTables())
                let found = try store.store.reader().read { db in
                    try Row.fetchAll(
                        db, sql: "SELECT info_hash, address, port, left, last_seen FROM swarms JOIN peers ON swarm = id"
                    ).map { row in
                        let infoHash: Data = row[0]
                        return "\(infoHash[0])|\(row[1] as String)|\(row[2] as Int)|\(row[3] as Int)|\(row[4] as Int)"
                    }
                }
                #expect(found.count == expected.count, "round \(round)")
                #expect(Set(found).symmetricDifference(expected).count == 0, "round \(round)")
            }
            store.close()
        }
    }

    @Test func `the registry shows in the tables`() throws {
        try StorageTest.inDirectory { directory in
            let store = try OpenStore(directory, options: library.options)
            func torrent(_ byte: UInt8, _ name: String) -> RegisteredTorrent {
                RegisteredTorrent(infoHash: InfoHash(StorageTest.bytes20(byte)), name: name, byteCount: UInt64(byte))
            }
            let users = ["ørsted", "Zoe", "ann"].map { User(name: $0, passkey: Array("key of \($0)".utf8)) }
            let listed = [0xFF, 0x00, 0x7F].map { InfoHash(StorageTest.bytes20($0)) }
            store.write(
                .saveChunk(
                    library.registry(
                        index: 1,
                        RegistryImage(
                            access: AccessRules(mode: .deny, infoHashes: listed + listed, users: users),
                            torrents: (0...255).map { torrent($0, "torrent \($0)") }))))
            #expect(store.waitForTables())
            #expect(
                try StorageTest.query(store.store, "SELECT name, passkey FROM users ORDER BY name") == [
                    "Zoe|key of Zoe", "ann|key of ann", "ørsted|key of ørsted",
                ])
            #expect(try StorageTest.query(store.store, "SELECT count(*) FROM access_list") == ["3"])
            #expect(try StorageTest.query(store.store, "SELECT count(*) FROM torrents") == ["256"])
            #expect(try StorageTest.query(store.store, "SELECT value FROM meta WHERE key = 'access_mode'") == ["deny"])

            store.write(
                .saveChunk(
                    library.registry(
                        index: 2,
                        RegistryImage(
                            access: AccessRules(mode: .private, users: [users[2], users[0]]),
                            torrents: [torrent(200, "another name"), torrent(3, "torrent 3")]))))
            #expect(store.waitForTables())
            #expect(try StorageTest.query(store.store, "SELECT name FROM users ORDER BY name") == ["ann", "ørsted"])
            #expect(try StorageTest.query(store.store, "SELECT count(*) FROM access_list") == ["0"])
            #expect(
                try StorageTest.query(store.store, "SELECT name, size FROM torrents ORDER BY size") == [
                    "torrent 3|3", "another name|200",
                ])
            #expect(
                try StorageTest.query(store.store, "SELECT value FROM meta WHERE key = 'access_mode'") == ["private"])
            store.close()
        }
    }

    @Test func `an orderly stop empties the tables`() throws {
        try StorageTest.inDirectory { directory in
            let store = try OpenStore(directory, options: library.options)
            let registry = library.registry(
                index: 1,
                RegistryImage(
                    access: AccessRules(),
                    torrents: [
                        RegisteredTorrent(infoHash: InfoHash(StorageTest.bytes20(1)), name: "one", byteCount: 1)
                    ]))
            let kept = library.shard(2, index: 1, [StorageTest.swarm(2, [StorageTest.peer("192.0.2.2")])])
            store.write(
                .saveChunk(registry),
                .saveChunk(library.shard(1, index: 1, [StorageTest.swarm(1, [StorageTest.peer("192.0.2.1")])])),
                .saveChunk(kept))
            #expect(store.waitForTables())
            let counts = """
                SELECT (SELECT count(*) FROM torrents), (SELECT count(*) FROM swarms), (SELECT count(*) FROM peers)
                """
            #expect(try StorageTest.query(store.store, counts) == ["1|2|2"])
            store.write(.replaceAll(chunks: [registry, kept]))
            #expect(store.waitForTables())
            #expect(try StorageTest.query(store.store, counts) == ["1|1|1"])
            #expect(try StorageTest.query(store.store, "SELECT address FROM peers") == ["192.0.2.2"])
            store.write(.replaceAll(chunks: [registry]))
            #expect(try StorageTest.query(store.store, counts) == ["1|0|0"])
            store.write(.replaceAll(chunks: []))
            #expect(try StorageTest.query(store.store, counts) == ["0|0|0"])
            store.close()
        }
    }

    @Test func `closing brings the tables up to date, and so does the next start`() throws {
        try StorageTest.inDirectory { directory in
            func chunk(_ number: UInt32, index: UInt64, _ host: String) -> Persist.Change {
                .saveChunk(
                    library.shard(
                        number, index: index, [StorageTest.swarm(UInt8(number), [StorageTest.peer(host)])]))
            }
            let addresses = "SELECT address FROM peers ORDER BY address"
            let store = try OpenStore(directory, options: library.options)
            store.write(chunk(1, index: 1, "192.0.2.1"))
            store.close()
            let other = try StorageTest.otherProgram(directory)
            #expect(try other.read { try String.fetchAll($0, sql: addresses) } == ["192.0.2.1"])
            try other.close()

            // A life in which the tables fall behind, for chunks old and new.
            var broken = library.options
            broken.decoder = ChunkDecoder(
                swarms: { chunk throws(ChunkDamaged) in throw ChunkDamaged(number: chunk.number) },
                registry: { chunk throws(ChunkDamaged) in throw ChunkDamaged(number: chunk.number) })
            let unable = try OpenStore(directory, options: broken)
            unable.write(chunk(1, index: 2, "192.0.2.2"))
            unable.write(chunk(2, index: 2, "192.0.2.3"))
            unable.close()
            let reason = "its bytes are not those of a chunk"
            #expect(
                unable.observations == [
                    .chunkUnreadable(number: 1, reason: reason), .chunkUnreadable(number: 2, reason: reason),
                ])

            let again = try OpenStore(directory, options: library.options)
            #expect(again.waitForTables())
            #expect(try StorageTest.query(again.store, addresses) == ["192.0.2.2", "192.0.2.3"])
            again.close()
        }
    }

    @Test func `slices take a twentieth of a busy thread, and all of an idle one`() {
        let start = Instant(nanoseconds: 5_000_000_000)
        let end = start + .milliseconds(2)
        var pace = SlicePace()
        #expect(pace.nextSlice < start)
        pace.worked(from: start, to: end, isBusy: true)
        #expect(pace.nextSlice == end + .milliseconds(38))
        pace.worked(from: start, to: end, isBusy: false)
        #expect(pace.nextSlice == end)
        // The process was stopped in the middle of a slice.
        let late = start + .seconds(60)
        pace.worked(from: start, to: late, isBusy: true)
        #expect(pace.nextSlice <= late + .milliseconds(500))
    }

    @Test func `a swarm that moved to another chunk is there once`() throws {
        try StorageTest.inDirectory { directory in
            let store = try OpenStore(directory, options: library.options)
            let swarm = StorageTest.swarm(1, completed: 4, [StorageTest.peer("192.0.2.1")])
            store.write(.saveChunk(library.shard(1, index: 1, [swarm])))
            #expect(store.waitForTables())
            store.write(.saveChunk(library.shard(2, index: 2, [swarm])), .saveChunk(library.shard(1, index: 2, [])))
            #expect(store.waitForTables())
            #expect(try StorageTest.query(store.store, "SELECT chunk, completed FROM swarms") == ["2|4"])
            #expect(try StorageTest.query(store.store, "SELECT swarm >> 32, address FROM peers") == ["2|192.0.2.1"])
            store.close()
        }
    }

    @Test func `no reference is ever broken`() throws {
        try StorageTest.inDirectory { directory in
            let store = try OpenStore(directory, options: library.options)
            var random = RandomStream(seed: 3)
            for round in UInt64(1)...20 {
                let swarms = (0..<40).filter { _ in random.oneIn(2) }.map { number in
                    StorageTest.swarm(
                        UInt8(number),
                        (0..<random.below(100)).map { StorageTest.peer("10.0.\(number).\($0)", left: random.next()) })
                }
                store.write(.saveChunk(library.shard(1, index: round, swarms)))
                for _ in 0..<5 { #expect(try StorageTest.query(store.store, "PRAGMA foreign_key_check") == []) }
            }
            #expect(store.waitForTables())
            store.close()
        }
    }
}
