/// The JSON that the API answers with. Its keys are a promise: docs/openapi.yaml describes each, and a test compares.

import Foundation
import Primitives
import TrackerLogic
import Wire

struct StatusDocument: Encodable {
    struct Listener: Encodable {
        var service: String
        var address: String
    }

    var version: String
    var processID: Int32
    var startedAt: String
    var uptimeSeconds: Double
    var listeners: [Listener]
    var node: NodeDocument

    init(_ status: NodeStatus, _ facts: ProcessFacts, now: WallTime) {
        version = facts.version
        processID = facts.processID
        startedAt = Self.iso8601(facts.startedAt)
        uptimeSeconds = Double(max(now.milliseconds - facts.startedAt.milliseconds, 0)) / 1000
        listeners = facts.listeners.map { Listener(service: $0.service.rawValue, address: "\($0.address)") }
        node = NodeDocument(status)
    }

    private static func iso8601(_ time: WallTime) -> String {
        Date(timeIntervalSince1970: Double(time.seconds)).formatted(Date.ISO8601FormatStyle())
    }
}

struct NodeDocument: Encodable {
    struct EpochDocument: Encodable {
        var round: UInt64
        var id: UInt32
    }

    struct CountersDocument: Encodable {
        var connects: UInt64
        var announces: UInt64
        var scrapes: UInt64
        var errors: UInt64
        var errorsWithheld: UInt64
        var ignored: UInt64
        var dropped: UInt64
        var entries: UInt64
        var updates: UInt64
        var expired: UInt64
        var completed: UInt64
    }

    var id: UInt32
    var role: String
    var epoch: EpochDocument
    var commitIndex: UInt64
    var lastIndex: UInt64
    /// Hexadecimal: JavaScript has no integers beyond 2^53.
    var digest: String
    var accessMode: String
    var torrents: Int
    var peers: Int
    var peersIPv4: Int
    var peersIPv6: Int
    var seeders: Int
    var registeredTorrents: Int
    var intervalSeconds: UInt32
    var waitingRequests: Int
    var counters: CountersDocument

    init(_ status: NodeStatus) {
        id = status.id
        role = status.role.rawValue
        epoch = EpochDocument(round: status.epoch.round, id: status.epoch.id)
        commitIndex = status.commitIndex
        lastIndex = status.lastIndex
        var bytes: [UInt8] = []
        bytes.append(bigEndian: status.digest)
        digest = hexadecimal(bytes)
        accessMode = Self.name(status.accessMode)
        torrents = status.table.torrents
        peers = status.table.peers
        peersIPv4 = status.table.peersIPv4
        peersIPv6 = status.table.peersIPv6
        seeders = status.table.seeders
        registeredTorrents = status.registeredTorrents
        intervalSeconds = status.interval
        waitingRequests = status.waitingRequests
        let counters = status.counters
        self.counters = CountersDocument(
            connects: counters.connects, announces: counters.announces, scrapes: counters.scrapes,
            errors: counters.errors, errorsWithheld: counters.errorsWithheld, ignored: counters.ignored,
            dropped: counters.dropped, entries: counters.entries, updates: counters.updates,
            expired: counters.expired, completed: counters.completed)
    }

    private static func name(_ mode: AccessMode) -> String {
        switch mode {
        case .open: "open"
        case .allow: "allow"
        case .deny: "deny"
        case .private: "private"
        }
    }
}

struct TorrentsDocument: Encodable {
    struct Torrent: Encodable {
        var infoHash: String
        var name: String
        var byteCount: UInt64
        var seeders: UInt32
        var leechers: UInt32
        var completed: UInt32
    }

    var total: Int
    var offset: Int
    var torrents: [Torrent]

    init(_ page: TorrentsPage, offset: Int) {
        total = page.total
        self.offset = offset
        torrents = page.torrents.map { torrent in
            Torrent(
                infoHash: "\(torrent.registered.infoHash)", name: torrent.registered.name,
                byteCount: torrent.registered.byteCount, seeders: torrent.counts.seeders,
                leechers: torrent.counts.leechers, completed: torrent.counts.completed)
        }
    }
}

struct ErrorDocument: Encodable {
    var error: String
}
