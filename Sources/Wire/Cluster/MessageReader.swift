// The parts of cluster messages as bytes: a cursor that refuses what no tracker writes, and each part both ways.

import Primitives

/// A cursor over the bytes of a cluster message.
struct MessageReader {
    private var bytes: ByteReader

    init(_ bytes: [UInt8], from offset: Int) { self.bytes = ByteReader(bytes, from: offset) }

    /// Nothing may be left.
    func end() throws(ClusterMessageError) {
        guard bytes.remaining == 0 else { throw .damaged }
    }

    // MARK: - Numbers and strings

    mutating func u8() throws(ClusterMessageError) -> UInt8 {
        do throws(OutOfBytes) { return try bytes.u8() } catch { throw .damaged }
    }

    mutating func u16() throws(ClusterMessageError) -> UInt16 {
        do throws(OutOfBytes) { return try bytes.u16() } catch { throw .damaged }
    }

    mutating func u32() throws(ClusterMessageError) -> UInt32 {
        do throws(OutOfBytes) { return try bytes.u32() } catch { throw .damaged }
    }

    mutating func u64() throws(ClusterMessageError) -> UInt64 {
        do throws(OutOfBytes) { return try bytes.u64() } catch { throw .damaged }
    }

    mutating func bytes20() throws(ClusterMessageError) -> Bytes20 {
        do throws(OutOfBytes) { return try bytes.bytes20() } catch { throw .damaged }
    }

    mutating func address() throws(ClusterMessageError) -> SocketAddress {
        do throws(OutOfBytes) { return try bytes.address() } catch { throw .damaged }
    }

    mutating func flag() throws(ClusterMessageError) -> Bool {
        switch try u8() {
        case 0: false
        case 1: true
        default: throw .damaged
        }
    }

    /// One of the cases of an enumeration.
    mutating func choice<Choice: RawRepresentable<UInt8>>() throws(ClusterMessageError) -> Choice {
        guard let choice = Choice(rawValue: try u8()) else { throw .damaged }
        return choice
    }

    /// Bytes behind their 16-bit length.
    mutating func counted() throws(ClusterMessageError) -> [UInt8] {
        do throws(OutOfBytes) { return Array(try bytes.counted()) } catch { throw .damaged }
    }

    /// Bytes behind their 32-bit length.
    mutating func long(atMost limit: Int) throws(ClusterMessageError) -> [UInt8] {
        let count = Int(clamping: try u32())
        guard count <= limit else { throw .damaged }
        do throws(OutOfBytes) { return Array(try bytes.take(count)) } catch { throw .damaged }
    }

    /// A part that is read in the same way from entries and snapshots.
    mutating func part<Part>(
        _ read: (inout ByteReader) throws(OutOfBytes) -> Part
    ) throws(ClusterMessageError) -> Part {
        do throws(OutOfBytes) { return try read(&bytes) } catch { throw .damaged }
    }

    /// An entry that is whole: whoever gets the message need not check it again.
    mutating func entry() throws(ClusterMessageError) -> Entry {
        guard let entry = try entryIfAny() else { throw .damaged }
        return entry
    }

    /// An entry, or no bytes for none.
    mutating func entryIfAny() throws(ClusterMessageError) -> Entry? {
        let bytes = try long(atMost: ClusterMessage.Limits.entryByteCount)
        guard !bytes.isEmpty else { return nil }
        do throws(EntryDamaged) { return try Entry(bytes) } catch { throw .damaged }
    }

    /// A count of one byte, as bounded as what it counts.
    mutating func count(atMost limit: Int) throws(ClusterMessageError) -> Int {
        let count = Int(try u8())
        guard count <= limit else { throw .damaged }
        return count
    }

    // MARK: - Names of the cluster

    mutating func life() throws(ClusterMessageError) -> Life { Life(id: try u32(), incarnation: try u64()) }

    mutating func epoch() throws(ClusterMessageError) -> Epoch {
        Epoch(round: try number(atMost: NumberBounds.round), id: try u32())
    }

    /// An index, or another number that counts up.
    mutating func index() throws(ClusterMessageError) -> UInt64 { try number(atMost: NumberBounds.index) }

    mutating func attempt() throws(ClusterMessageError) -> UInt32 {
        let attempt = try u32()
        guard attempt <= NumberBounds.attempt else { throw .damaged }
        return attempt
    }

    mutating func position() throws(ClusterMessageError) -> Position { Position(index: try index(), chain: try u64()) }

    mutating func ballot() throws(ClusterMessageError) -> Ballot {
        let ballot = Ballot(epoch: try epoch(), attempt: try attempt(), index: try index())
        // There is no entry 0.
        guard ballot.index > 0 else { throw .damaged }
        return ballot
    }

    private mutating func number(atMost limit: UInt64) throws(ClusterMessageError) -> UInt64 {
        let number = try u64()
        guard number <= limit else { throw .damaged }
        return number
    }
}

extension [UInt8] {
    mutating func append(_ life: Life) {
        append(bigEndian: life.id)
        append(bigEndian: life.incarnation)
    }

    mutating func append(_ epoch: Epoch) {
        append(bigEndian: epoch.round)
        append(bigEndian: epoch.id)
    }

    mutating func append(_ position: Position) {
        append(bigEndian: position.index)
        append(bigEndian: position.chain)
    }

    mutating func append(_ ballot: Ballot) {
        append(ballot.epoch)
        append(bigEndian: ballot.attempt)
        append(bigEndian: ballot.index)
    }

    mutating func append(_ flag: Bool) { append(flag ? 1 : 0) }

    /// Bytes behind their 32-bit length.
    mutating func append(long bytes: [UInt8], atMost limit: Int) {
        precondition(bytes.count <= limit, "\(bytes.count) bytes are more than a cluster message may hold: \(limit)")
        append(bigEndian: UInt32(bytes.count))
        append(contentsOf: bytes)
    }

    /// Nothing but a length of 0 for none.
    mutating func append(_ entry: Entry?) {
        append(long: entry?.bytes ?? [], atMost: ClusterMessage.Limits.entryByteCount)
    }

    /// A 16-bit count.
    mutating func append(count: Int, atMost limit: Int) {
        precondition(count <= limit, "\(count) are more than a cluster message may hold: \(limit)")
        append(bigEndian: UInt16(count))
    }

    mutating func append(infoHashes: [InfoHash]) {
        append(shortCount: infoHashes.count, atMost: ClusterMessage.Limits.scrapeHashes)
        for infoHash in infoHashes { append(infoHash.bytes) }
    }

    /// A count of one byte.
    mutating func append(shortCount count: Int, atMost limit: Int) {
        precondition(count <= limit, "\(count) are more than a cluster message may hold: \(limit)")
        append(UInt8(count))
    }
}

// MARK: - Parts

extension Keepalive {
    func encode(into bytes: inout [UInt8]) {
        bytes.append(role.rawValue)
        bytes.append(position)
        bytes.append(bigEndian: digest)
        bytes.append(hasFullState)
        settings.encode(into: &bytes)
    }

    init(_ reader: inout MessageReader) throws(ClusterMessageError) {
        self.init(
            role: try reader.choice(), position: try reader.position(), digest: try reader.u64(),
            hasFullState: try reader.flag(), settings: try SettingsPrint(&reader))
    }
}

extension Hello {
    func encode(into bytes: inout [UInt8]) {
        bytes.append(position)
        bytes.append(hasFullState)
        bytes.append(isBlank)
        bytes.append(shortCount: heard.count, atMost: ClusterMessage.Limits.lives)
        for life in heard { bytes.append(life) }
        bytes.append(leftInOrder)
        settings.encode(into: &bytes)
    }

    init(_ reader: inout MessageReader) throws(ClusterMessageError) {
        position = try reader.position()
        hasFullState = try reader.flag()
        isBlank = try reader.flag()
        heard = []
        for _ in 0..<(try reader.count(atMost: ClusterMessage.Limits.lives)) { heard.append(try reader.life()) }
        leftInOrder = try reader.flag()
        settings = try SettingsPrint(&reader)
    }
}

extension Welcome {
    func encode(into bytes: inout [UInt8]) {
        bytes.append(bigEndian: id)
        bytes.append(position)
        bytes.append(answered)
        bytes.append(bigEndian: servesFrom)
        bytes.append(bigEndian: attempt)
        bytes.append(needsTransfer)
        bytes.append(beginsEmpty)
        for word in [secret.w0, secret.w1, secret.w2, secret.w3] { bytes.append(bigEndian: word) }
        bytes.append(bigEndian: shardCount)
    }

    init(_ reader: inout MessageReader) throws(ClusterMessageError) {
        self.init(
            id: try reader.u32(), position: try reader.position(), answered: try reader.position(),
            servesFrom: try reader.index(), attempt: try reader.attempt(), needsTransfer: try reader.flag(),
            beginsEmpty: try reader.flag(),
            secret: ClusterSecret(try reader.u64(), try reader.u64(), try reader.u64(), try reader.u64()),
            shardCount: try reader.u32())
        guard NumberBounds.isShardCount(shardCount) else { throw .damaged }
    }
}

extension ForwardedRequest {
    func encode(into bytes: inout [UInt8]) {
        bytes.append(bigEndian: number)
        bytes.append(source)
        switch content {
        case .datagram(let datagram):
            bytes.append(0)
            bytes.append(counted: datagram)
        case .announce(let announce, let passkey):
            bytes.append(1)
            announce.encode(into: &bytes)
            bytes.append(counted: passkey)
        case .scrape(let infoHashes, let passkey):
            bytes.append(2)
            bytes.append(infoHashes: infoHashes)
            bytes.append(counted: passkey)
        }
    }

    init(_ reader: inout MessageReader) throws(ClusterMessageError) {
        number = try reader.index()
        source = try reader.address()
        switch try reader.u8() {
        case 0: content = .datagram(try reader.counted())
        case 1: content = .announce(try Announce(&reader), passkey: try reader.counted())
        case 2:
            var infoHashes: [InfoHash] = []
            for _ in 0..<(try reader.count(atMost: ClusterMessage.Limits.scrapeHashes)) {
                infoHashes.append(InfoHash(try reader.bytes20()))
            }
            content = .scrape(infoHashes, passkey: try reader.counted())
        default: throw .damaged
        }
    }
}

extension Announce {
    func encode(into bytes: inout [UInt8]) {
        bytes.append(infoHash.bytes)
        bytes.append(peerID.bytes)
        bytes.append(bigEndian: downloaded)
        bytes.append(bigEndian: left)
        bytes.append(UInt8(truncatingIfNeeded: event.rawValue))
        bytes.append(bigEndian: port)
    }

    init(_ reader: inout MessageReader) throws(ClusterMessageError) {
        let (infoHash, peerID) = (InfoHash(try reader.bytes20()), PeerID(try reader.bytes20()))
        let (downloaded, left) = (try reader.u64(), try reader.u64())
        guard let event = AnnounceEvent(rawValue: UInt32(try reader.u8())) else { throw .damaged }
        self.init(
            infoHash: infoHash, peerID: peerID, downloaded: downloaded, left: left, event: event,
            port: try reader.u16())
    }
}

extension AnsweredRequest {
    func encode(into bytes: inout [UInt8]) {
        bytes.append(bigEndian: number)
        switch content {
        case .counts(let counts):
            bytes.append(0)
            bytes.append(shortCount: counts.count, atMost: ClusterMessage.Limits.scrapeHashes)
            for swarm in counts {
                bytes.append(bigEndian: swarm.seeders)
                bytes.append(bigEndian: swarm.leechers)
                bytes.append(bigEndian: swarm.completed)
            }
        case .refusal(let refusal):
            bytes.append(1)
            bytes.append(refusal)
        }
    }

    init(_ reader: inout MessageReader) throws(ClusterMessageError) {
        number = try reader.u64()
        switch try reader.u8() {
        case 0:
            var counts: [ScrapeCounts] = []
            for _ in 0..<(try reader.count(atMost: ClusterMessage.Limits.scrapeHashes)) {
                counts.append(
                    ScrapeCounts(
                        seeders: try reader.u32(), leechers: try reader.u32(), completed: try reader.u32()))
            }
            content = .counts(counts)
        case 1: content = .refusal(try reader.u8())
        default: throw .damaged
        }
    }
}
