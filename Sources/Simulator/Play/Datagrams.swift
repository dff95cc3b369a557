// Datagrams of BEP 15 and entries of the log in words, for people who look at one message.

import Primitives
import TrackerLogic
import Wire

/// Datagrams of BEP 15 in words.
enum Datagrams {
    /// What a datagram says, on one line.
    static func words(request bytes: [UInt8]) -> String { request(bytes).joined(separator: ", ") }

    /// The same of a reply to an address.
    static func words(reply bytes: [UInt8], to remote: SocketAddress) -> String {
        reply(bytes, isIPv6: !remote.isIPv4).joined(separator: ", ")
    }

    /// What a client asks, a line a field.
    static func request(_ bytes: [UInt8]) -> [String] {
        do throws(TrackerRequestError) {
            switch try TrackerRequest(bytes.span.bytes) {
            case .connect(let transaction):
                return ["asks for a connection id", "transaction \(hex(transaction.rawValue))"]
            case .announce(let announce):
                return [
                    announce.event == .none ? "announces" : "announces \"\(announce.event.words)\"",
                    "swarm \(announce.infoHash)", "\(announce.left) bytes left",
                    announce.numWant < 0 ? "as many peers as usual" : "\(announce.numWant) peers wanted",
                    "listens on port \(announce.port)", "transaction \(hex(announce.transactionID.rawValue))",
                    "connection id \(hex(announce.connectionID.rawValue))",
                ]
            case .scrape(let connection, let transaction, let count):
                let hashes = (0..<count).map { "\(InfoHash(Bytes20(bytes.span.bytes, at: 16 + 20 * $0)))" }
                return [
                    "asks for the counts of \(Words.list("swarm", hashes, atMost: 4))",
                    "transaction \(hex(transaction.rawValue))", "connection id \(hex(connection.rawValue))",
                ]
            }
        } catch {
            return ["junk of \(Words.counted(bytes.count, "byte"))"]
        }
    }

    /// What a tracker answers, a line a field; how long a peer is depends on the address that is answered.
    static func reply(_ bytes: [UInt8], isIPv6: Bool) -> [String] {
        guard bytes.count >= 8 else { return ["junk of \(Words.counted(bytes.count, "byte"))"] }
        let span = bytes.span.bytes
        let transaction = "transaction \(hex(span.u32(at: 4)))"
        switch span.u32(at: 0) {
        case 0 where bytes.count >= 16: return ["gives a connection id", transaction, hex(span.u64(at: 8))]
        case 1 where bytes.count >= 20:
            return [
                "answers an announce", Words.counted((bytes.count - 20) / (isIPv6 ? 18 : 6), "peer"),
                "\(span.u32(at: 16)) seeders", "\(span.u32(at: 12)) leechers", "next in \(span.u32(at: 8)) s",
                transaction,
            ]
        case 2:
            let counts = (0..<(bytes.count - 8) / 12).map { place in
                let at = 8 + 12 * place
                return "\(span.u32(at: at)) seeders, \(span.u32(at: at + 8)) leechers, "
                    + "\(span.u32(at: at + 4)) downloads"
            }
            return ["answers a scrape"] + counts.prefix(8) + [transaction]
        case 3: return ["refuses: \(quoted(String(decoding: bytes[8...], as: UTF8.self)))", transaction]
        default: return ["junk of \(Words.counted(bytes.count, "byte"))"]
        }
    }

    static func hex(_ number: some FixedWidthInteger & UnsignedInteger) -> String { String(number, radix: 16) }
}

extension AnnounceEvent {
    /// The event, as BEP 15 calls it.
    var words: String {
        switch self {
        case .none: "none"
        case .completed: "completed"
        case .started: "started"
        case .stopped: "stopped"
        }
    }
}
