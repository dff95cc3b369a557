// What can happen to a tracker as bytes of an archive.

import Primitives
import Wire

extension Event: Archived {
    static var blank: Event { .deadlineReached }

    /// A number for what has happened; numbers are never used anew.
    var tag: UInt8 {
        switch self {
        case .started: 1
        case .datagramsReceived: 2
        case .requestReceived: 3
        case .persisted: 4
        case .persistFailed: 5
        case .deadlineReached: 6
        case .commandReceived: 7
        case .messageReceived: 8
        case .busConnected: 9
        case .busLost: 10
        case .reportMade: 11
        }
    }

    mutating func walk(_ archive: inout Archive) {
        switch archive.tag(tag) {
        case 1: self = .started
        case 2:
            var batch = if case .datagramsReceived(let batch) = self { batch } else { DatagramBatch() }
            batch.walk(&archive)
            self = .datagramsReceived(batch)
        case 3:
            var request = if case .requestReceived(let request) = self { request } else { ClientRequest.blank }
            request.walk(&archive)
            self = .requestReceived(request)
        case 4:
            var token = if case .persisted(let token) = self { token } else { PersistToken(0) }
            archive.number(&token.rawValue)
            self = .persisted(token)
        case 5:
            var (token, failure) =
                if case .persistFailed(let token, let failure) = self { (token, failure) } else {
                    (PersistToken(0), StorageFailure.blank)
                }
            archive.number(&token.rawValue)
            failure.walk(&archive)
            self = .persistFailed(token, failure)
        case 6: self = .deadlineReached
        case 7:
            var command = if case .commandReceived(let command) = self { command } else { OperatorCommand.blank }
            command.walk(&archive)
            self = .commandReceived(command)
        case 8:
            var message = if case .messageReceived(let message) = self { message } else { ClusterMessage.blank }
            message.walk(&archive)
            self = .messageReceived(message)
        case 9: self = .busConnected
        case 10: self = .busLost
        case 11:
            var report = if case .reportMade(let report) = self { report } else { TrackerReport.blank }
            report.walk(&archive)
            self = .reportMade(report)
        default: archive.refuse()
        }
    }
}

extension StorageFailure: Archived { static var blank: StorageFailure { .broken } }

extension DatagramBatch: Archived {
    static var blank: DatagramBatch { DatagramBatch() }

    /// Which addresses are short: an IPv4 address has 6 bytes instead of 22, and one that is unspecified has none.
    private enum Shape {
        static let remoteIsIPv4: UInt8 = 1
        static let localIsIPv4: UInt8 = 2
        static let localIsUnspecified: UInt8 = 4
    }

    /// The most bytes of a datagram without its payload: shape, two addresses, socket, length.
    private static let maxHeaderByteCount = 1 + 2 * SocketAddress.archivedByteCount + 2 + 2

    /// The datagrams as they are told apart; where they lie in their buffer is not kept.
    mutating func walk(_ archive: inout Archive) {
        let count = archive.count(datagrams.count)
        guard archive.isReading else { return write(into: &archive) }
        self = DatagramBatch()
        for _ in 0..<count {
            var datagram = Datagram(remote: .unspecified, local: .unspecified, offset: 0, byteCount: 0, socket: 0)
            let shape = archive.tag(0)
            archive.read(address: &datagram.remote, isIPv4: shape & Shape.remoteIsIPv4 != 0)
            if shape & Shape.localIsUnspecified == 0 {
                archive.read(address: &datagram.local, isIPv4: shape & Shape.localIsIPv4 != 0)
            }
            archive.number(&datagram.socket)
            archive.number(&datagram.byteCount)
            let payload = archive.take(Int(datagram.byteCount))
            if archive.isDamaged { return }
            append(payload, remote: datagram.remote, local: datagram.local, socket: datagram.socket)
        }
    }

    /// What `walk` reads, all of it in one room: a tracker under load does little else than this.
    private func write(into archive: inout Archive) {
        var limit = 0
        for datagram in datagrams { limit += DatagramBatch.maxHeaderByteCount + Int(datagram.byteCount) }
        archive.put(upTo: limit) { room in
            var end = room
            bytes.withUnsafeBytes { bytes in
                for datagram in datagrams {
                    let shape = DatagramBatch.shape(datagram)
                    end.put(shape)
                    end.put(datagram.remote, isIPv4: shape & Shape.remoteIsIPv4 != 0)
                    if shape & Shape.localIsUnspecified == 0 {
                        end.put(datagram.local, isIPv4: shape & Shape.localIsIPv4 != 0)
                    }
                    end.put(datagram.socket)
                    end.put(datagram.byteCount)
                    let start = Int(datagram.offset)
                    end.copyMemory(
                        from: UnsafeRawBufferPointer(rebasing: bytes[start..<start + Int(datagram.byteCount)]))
                    end = UnsafeMutableRawBufferPointer(rebasing: end[Int(datagram.byteCount)...])
                }
            }
            return room.count - end.count
        }
    }

    private static func shape(_ datagram: Datagram) -> UInt8 {
        (datagram.remote.isPlainIPv4 ? Shape.remoteIsIPv4 : 0)
            | (datagram.local == .unspecified ? Shape.localIsUnspecified : 0)
            | (datagram.local.isPlainIPv4 ? Shape.localIsIPv4 : 0)
    }
}

extension SocketAddress {
    /// Both halves, scope and port.
    fileprivate static let archivedByteCount = 8 + 8 + 4 + 2

    fileprivate var isPlainIPv4: Bool { isIPv4 && self == SocketAddress(ipv4: ipv4, port: port) }
}

extension Archive {
    fileprivate mutating func read(address: inout SocketAddress, isIPv4: Bool) {
        guard isIPv4 else { return address.walk(&self) }
        var (number, port) = (address.ipv4, address.port)
        self.number(&number)
        self.number(&port)
        address = SocketAddress(ipv4: number, port: port)
    }
}

extension UnsafeMutableRawBufferPointer {
    /// Puts a number at the front, as an archive does, and leaves what is behind it.
    @inline(__always)
    fileprivate mutating func put<Number: FixedWidthInteger & BitwiseCopyable>(_ number: Number) {
        storeBytes(of: number.littleEndian, as: Number.self)
        self = UnsafeMutableRawBufferPointer(rebasing: self[(Number.bitWidth / 8)...])
    }

    @inline(__always)
    fileprivate mutating func put(_ address: SocketAddress, isIPv4: Bool) {
        if isIPv4 {
            put(address.ipv4)
            return put(address.port)
        }
        put(address.high)
        put(address.low)
        put(address.scope)
        put(address.port)
    }
}

extension ClientRequest: Archived {
    static var blank: ClientRequest { ClientRequest(id: 0, source: .unspecified, passkey: [], content: .scrape([])) }

    mutating func walk(_ archive: inout Archive) {
        id.walk(&archive)
        source.walk(&archive)
        archive.walk(bytes: &passkey)
        var announce: Announce? = if case .announce(let announce) = content { announce } else { nil }
        var infoHashes: [InfoHash] = if case .scrape(let infoHashes) = content { infoHashes } else { [] }
        announce.walk(&archive)
        infoHashes.walk(&archive)
        content = announce.map { .announce($0) } ?? .scrape(infoHashes)
    }
}

extension OperatorCommand: Archived {
    static var blank: OperatorCommand { .elect }

    private var tag: UInt8 {
        switch self {
        case .setAccess: 1
        case .setFileTorrents: 2
        case .addMember: 3
        case .removeMember: 4
        case .replaceMember: 5
        case .handOver: 6
        case .elect: 7
        case .drain: 8
        case .stopCluster: 9
        case .emptySwarms: 10
        case .change: 11
        case .setFileAccounts: 12
        }
    }

    /// The ids that it names.
    private var ids: (UInt32, UInt32) {
        switch self {
        case .addMember(let id), .removeMember(let id), .handOver(let id): (id, 0)
        case .replaceMember(let id, let other): (id, other)
        case .setAccess, .setFileTorrents, .elect, .drain, .stopCluster, .emptySwarms, .change, .setFileAccounts: (0, 0)
        }
    }

    mutating func walk(_ archive: inout Archive) {
        var (id, other) = ids
        let tag = archive.tag(tag)
        if (3...6).contains(tag) {
            id.walk(&archive)
            other.walk(&archive)
        }
        switch tag {
        case 1:
            var rules = if case .setAccess(let rules) = self { rules } else { AccessRules.blank }
            rules.walk(&archive)
            self = .setAccess(rules)
        case 2:
            var torrents: [FileTorrent] = if case .setFileTorrents(let torrents) = self { torrents } else { [] }
            torrents.walk(&archive)
            self = .setFileTorrents(torrents)
        case 3: self = .addMember(id)
        case 4: self = .removeMember(id)
        case 5: self = .replaceMember(id, by: other)
        case 6: self = .handOver(to: id)
        case 7: self = .elect
        case 8: self = .drain
        case 9: self = .stopCluster
        case 10: self = .emptySwarms
        case 11:
            var (number, change): (UInt64, ConsoleChange) =
                if case .change(let number, let change) = self { (number, change) } else { (0, .blank) }
            number.walk(&archive)
            change.walk(&archive)
            self = .change(number: number, change)
        case 12:
            var accounts: [Account] = if case .setFileAccounts(let accounts) = self { accounts } else { [] }
            accounts.walk(&archive)
            self = .setFileAccounts(accounts)
        default: archive.refuse()
        }
    }
}
