// What a tracker's answer is worth.

import Primitives

/// What a tracker's answer is worth.
package enum LoadVerdict: Equatable {
    case connected(UInt64)
    /// - Parameters:
    ///   - peers: how many the list has.
    ///   - flaws: what is wrong with it all the same.
    case announced(peers: Int, flaws: Flaws)
    case scraped
    /// Action 3.
    case refused
    case wrongAction
    case wrongSize

    package struct Flaws: Equatable {
        /// More peers than were asked for.
        var isTooLong = false
        /// The announcing peer is in its own list.
        var namesAsker = false

        package init(isTooLong: Bool = false, namesAsker: Bool = false) {
            (self.isTooLong, self.namesAsker) = (isTooLong, namesAsker)
        }
    }
}

package struct LoadJudge: Sendable {
    /// 6 or 18.
    let endpointByteCount: Int
    /// The most peers that an answer may have; nil where the tracker was left to choose.
    let mostPeers: Int?
    let scrapeByteCount: Int

    package init(_ options: LoadOptions) {
        endpointByteCount = options.target.isIPv4 ? 6 : 18
        mostPeers = options.numWant > 0 ? Int(options.numWant) : nil
        scrapeByteCount = 8 + 12 * options.scrapeHashes
    }

    /// Judges a reply to a request that is under way.
    ///
    /// - Parameters:
    ///   - reply: at least 8 bytes, whose transaction id is that of the request.
    ///   - kind: what was asked.
    ///   - asker: the announcing peer's address and port.
    /// - Returns: what it is, or in what it breaks the protocol.
    package func judge(_ reply: RawSpan, _ kind: LoadFlight.Kind, asker: SocketAddress) -> LoadVerdict {
        switch (reply.u32(at: 0), kind) {
        case (0, .connect):
            return reply.byteCount == 16 ? .connected(reply.u64(at: 8)) : .wrongSize
        case (1, .announce):
            let listed = reply.byteCount - 20
            guard listed >= 0, listed.isMultiple(of: endpointByteCount) else { return .wrongSize }
            let peers = listed / endpointByteCount
            return .announced(
                peers: peers,
                flaws: LoadVerdict.Flaws(
                    isTooLong: mostPeers.map { peers > $0 } ?? false, namesAsker: lists(asker, reply)))
        case (2, .scrape):
            return reply.byteCount == scrapeByteCount ? .scraped : .wrongSize
        case (3, _):
            return .refused
        default:
            return .wrongAction
        }
    }

    private func lists(_ asker: SocketAddress, _ reply: RawSpan) -> Bool {
        var offset = 20
        if endpointByteCount == 6 {
            let address = asker.ipv4.bigEndian
            let port = asker.port.bigEndian
            while offset < reply.byteCount {
                if reply.unsafeLoadUnaligned(fromByteOffset: offset + 4, as: UInt16.self) == port,
                    reply.unsafeLoadUnaligned(fromByteOffset: offset, as: UInt32.self) == address
                {
                    return true
                }
                offset += 6
            }
            return false
        }
        while offset < reply.byteCount {
            if reply.u16(at: offset + 16) == asker.port, reply.u64(at: offset + 8) == asker.low,
                reply.u64(at: offset) == asker.high
            {
                return true
            }
            offset += 18
        }
        return false
    }
}
