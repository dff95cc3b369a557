// BEP 15 requests, laid out once and patched in place.

import Primitives

/// BEP 15 requests, laid out once and patched in place.
///
/// Written apart from `Wire`, so that a mistake there does not hide itself by being made on both sides.
package struct LoadRequests: Sendable {
    static let connectByteCount = 16
    static let announceByteCount = 98
    static let scrapeHeaderByteCount = 16

    private let connect: [UInt8]
    private let announce: [UInt8]
    let scrapeHashes: Int

    package init(_ options: LoadOptions) {
        var connect: [UInt8] = []
        connect.append(bigEndian: 0x417_2710_1980 as UInt64)
        connect.append(bigEndian: 0 as UInt32)  // action
        connect.append(bigEndian: 0 as UInt32)  // transaction id
        self.connect = connect

        var announce: [UInt8] = []
        announce.append(bigEndian: 0 as UInt64)  // connection id
        announce.append(bigEndian: 1 as UInt32)  // action
        announce.append(bigEndian: 0 as UInt32)  // transaction id
        announce.append(.zero)  // info hash, at 16
        announce.append(.zero)  // peer id, at 36
        announce.append(bigEndian: 0 as UInt64)  // downloaded
        announce.append(bigEndian: 0 as UInt64)  // left, at 64
        announce.append(bigEndian: 0 as UInt64)  // uploaded
        announce.append(bigEndian: 0 as UInt32)  // event, at 80
        announce.append(bigEndian: 0 as UInt32)  // IP address: the source's
        announce.append(bigEndian: UInt32(truncatingIfNeeded: mixed(options.seed)))  // key
        announce.append(bigEndian: options.numWant)
        announce.append(bigEndian: 0 as UInt16)  // port, at 96
        self.announce = announce
        scrapeHashes = options.scrapeHashes
    }

    package func writeConnect(_ transaction: UInt32, into room: UnsafeMutableRawBufferPointer) -> Int {
        room.copyBytes(from: connect)
        room.storeBytes(of: transaction.bigEndian, toByteOffset: 12, as: UInt32.self)
        return Self.connectByteCount
    }

    package struct Announce {
        var connection: UInt64
        var transaction: UInt32
        var infoHash: Bytes20
        var peerID: Bytes20
        var left: UInt64
        var event: UInt32
        var port: UInt16

        package init(
            connection: UInt64, transaction: UInt32, infoHash: Bytes20, peerID: Bytes20, left: UInt64, event: UInt32,
            port: UInt16
        ) {
            (self.connection, self.transaction) = (connection, transaction)
            (self.infoHash, self.peerID) = (infoHash, peerID)
            (self.left, self.event, self.port) = (left, event, port)
        }
    }

    package func writeAnnounce(_ request: Announce, into room: UnsafeMutableRawBufferPointer) -> Int {
        room.copyBytes(from: announce)
        room.storeBytes(of: request.connection.bigEndian, as: UInt64.self)
        room.storeBytes(of: request.transaction.bigEndian, toByteOffset: 12, as: UInt32.self)
        room.storeBytes(of: request.infoHash, toByteOffset: 16, as: Bytes20.self)
        room.storeBytes(of: request.peerID, toByteOffset: 36, as: Bytes20.self)
        room.storeBytes(of: request.left.bigEndian, toByteOffset: 64, as: UInt64.self)
        room.storeBytes(of: request.event.bigEndian, toByteOffset: 80, as: UInt32.self)
        room.storeBytes(of: request.port.bigEndian, toByteOffset: 96, as: UInt16.self)
        return Self.announceByteCount
    }

    /// Writes a scrape.
    ///
    /// - Parameters:
    ///   - connection: the connection id.
    ///   - transaction: the transaction id.
    ///   - first: a random torrent; the scrape asks for it and those that follow.
    ///   - population: names the torrents.
    ///   - room: for the whole datagram.
    /// - Returns: how many bytes were written.
    package func writeScrape(
        connection: UInt64, transaction: UInt32, first: Int, _ population: LoadPopulation,
        into room: UnsafeMutableRawBufferPointer
    ) -> Int {
        room.storeBytes(of: connection.bigEndian, as: UInt64.self)
        room.storeBytes(of: UInt32(2).bigEndian, toByteOffset: 8, as: UInt32.self)
        room.storeBytes(of: transaction.bigEndian, toByteOffset: 12, as: UInt32.self)
        for index in 0..<scrapeHashes {
            room.storeBytes(
                of: population.infoHash((first + index) % population.torrents),
                toByteOffset: Self.scrapeHeaderByteCount + 20 * index, as: Bytes20.self)
        }
        return scrapeByteCount
    }

    var scrapeByteCount: Int { Self.scrapeHeaderByteCount + 20 * scrapeHashes }
}
