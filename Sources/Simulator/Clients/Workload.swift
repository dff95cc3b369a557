// What people do with their clients.

import PeerLogic
import Primitives
import TrackerLogic
import Wire

/// What people do with their clients, drawn as it comes.
struct Workload: Sendable {
    let options: ScenarioOptions
    var random: RandomStream
    let infoHashes: [InfoHash]

    init(options: ScenarioOptions, random: RandomStream) {
        self.options = options
        var random = random
        infoHashes = (0..<options.swarmCount).map { _ in InfoHash(Workload.bytes20(&random)) }
        self.random = random
    }

    static func bytes20(_ random: inout RandomStream) -> Bytes20 {
        var bytes: [UInt8] = []
        for _ in 0..<3 { bytes.append(bigEndian: random.next()) }
        return Bytes20(bytes.span.bytes, at: 0)
    }

    mutating func infoHash() -> InfoHash { infoHashes[random.below(infoHashes.count)] }

    /// When a client comes for the first time.
    mutating func arrival() -> Duration {
        options.isFlashCrowd
            ? .seconds(1) + random.between(.zero, .milliseconds(100))
            : random.between(.milliseconds(10), options.stay)
    }

    /// Prepares a person's next visit, and says what he will do in the course of it.
    mutating func visit(_ client: inout SimulatedClient) -> [(after: Duration, act: SimulatedClient.Act)] {
        if client.peerID == .zero || random.oneIn(3) { client.peerID = PeerID(Workload.bytes20(&random)) }
        if client.infoHash.bytes == .zero || random.oneIn(3) { client.infoHash = infoHash() }
        let wishes: [Int32] = [-1, -1, -1, 0, 1, 5, 30, 200, .max, .min]
        client.numWant = wishes[random.below(wishes.count)]
        let isSeed = random.oneIn(3)
        client.progress = Announcer.Progress(
            downloaded: 0, left: isSeed ? 0 : 1 + random.below(UInt64(1) << 40), uploaded: 0)
        var acts: [(after: Duration, act: SimulatedClient.Act)] = []
        let stay = random.between(.milliseconds(100), options.stay * 2)
        if !isSeed {
            acts.append((random.between(.zero, options.stay), .progress))
            acts.append((random.between(.zero, options.stay * 2), .complete))
        }
        if random.oneIn(12) { acts.append((random.between(.zero, stay), .complete)) }
        acts.append((stay, random.oneIn(3) ? .vanish : .stop))
        return acts
    }

    /// How long a person stays away.
    mutating func absence() -> Duration {
        random.oneIn(3) ? random.between(.milliseconds(1), .seconds(2)) : random.between(.seconds(2), options.stay)
    }

    /// What a scraper asks for: known swarms and unknown ones, some twice.
    mutating func scrape() -> [InfoHash] {
        let count = random.oneIn(10) ? ScrapeRequest.maxInfoHashes : 1 + random.below(6)
        return (0..<count).map { _ in
            random.oneIn(5) ? InfoHash(Workload.bytes20(&random)) : infoHash()
        }
    }

    /// Something that is no honest request: noise, a forgery, or half of one.
    mutating func junk() -> [UInt8] {
        var bytes: [UInt8] = []
        switch random.below(5) {
        case 0:
            ConnectRequest(transactionID: TransactionID(UInt32(truncatingIfNeeded: random.next()))).encode(into: &bytes)
            if random.oneIn(2) { bytes.removeLast(1 + random.below(bytes.count)) }
        case 1:
            for _ in 0..<random.below(40) { bytes.append(bigEndian: random.next()) }
        case 2:
            ScrapeRequest(
                connectionID: ConnectionID(random.next()), transactionID: TransactionID(7), infoHashes: [infoHash()]
            ).encode(into: &bytes)
        default:
            AnnounceRequest(
                connectionID: ConnectionID(random.next()),
                transactionID: TransactionID(UInt32(truncatingIfNeeded: random.next())), infoHash: infoHash(),
                peerID: PeerID(Workload.bytes20(&random)), left: random.next(), event: .started, ip: 0x0A01_0001,
                port: UInt16(truncatingIfNeeded: random.next())
            ).encode(into: &bytes)
            if random.oneIn(3) { bytes.removeLast(random.below(bytes.count)) }
        }
        return bytes
    }

    /// Rules that an operator may want.
    mutating func rules() -> AccessRules {
        // Where people at consoles give passkeys to accounts, few have one from a file.
        if options.stewardCount > 0, random.oneIn(2) {
            let users = (0..<options.clientCount).filter { _ in random.oneIn(4) }
            return AccessRules(mode: .private, users: users.map(user))
        }
        let some = infoHashes.filter { _ in random.oneIn(2) }
        switch random.below(5) {
        case 0: return AccessRules(mode: .allow, infoHashes: some)
        case 1: return AccessRules(mode: .deny, infoHashes: some)
        case 2:
            let users = (0..<options.clientCount).filter { _ in !random.oneIn(4) }
            return AccessRules(mode: .private, users: users.map(user))
        default: return AccessRules()
        }
    }

    private func user(_ client: Int) -> User {
        User(name: "user \(client)", passkey: Workload.passkey(client, isOdd: options.hasOddPasskeys))
    }

    /// A passkey of a client; one of three odd ones has 128 bytes, which is the most.
    static func passkey(_ client: Int, isOdd: Bool) -> [UInt8] {
        let key = passkey(client)
        return isOdd && client % 3 == 1 ? key + Array(repeating: UInt8(ascii: "x"), count: 128 - key.count) : key
    }

    static func passkey(_ client: Int) -> [UInt8] { Array("key\(client)".utf8) }
}
