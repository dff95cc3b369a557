// What goes between trackers, and into the log, as bytes of an archive: by the codecs that these have already.

import Primitives
import Wire

extension Entry: Archived {
    static var blank: Entry {
        Entry(
            sealed: [], EntryHeader(index: 0, epoch: .zero, time: WallTime(milliseconds: 0), updateCount: 0),
            chain: 0)
    }

    mutating func walk(_ archive: inout Archive) {
        archive.walk(
            coded: &self, encode: { entry, bytes in bytes = entry.bytes },
            decode: { bytes in
                do throws(EntryDamaged) { return try Entry(bytes) } catch { return nil }
            })
    }
}

extension Update: Archived {
    static var blank: Update { .setInterval(0) }

    mutating func walk(_ archive: inout Archive) {
        archive.walk(
            coded: &self,
            encode: { update, bytes in
                EntryHeader.reserve(in: &bytes)
                update.encode(into: &bytes)
            },
            decode: { bytes in
                let header = EntryHeader(
                    index: 0, epoch: .zero, time: WallTime(milliseconds: 0), updateCount: 1,
                    ticketsOffset: UInt32(bytes.count))
                var cursor = UpdateCursor(header)
                do throws(EntryDamaged) { return try cursor.next(bytes) } catch { return nil }
            })
    }
}

extension Tickets: Archived {
    static var blank: Tickets { Tickets() }

    mutating func walk(_ archive: inout Archive) {
        let count = archive.count(count)
        if archive.isReading { self = Tickets() }
        for place in 0..<count {
            var ordinal = archive.isReading ? 0 : tickets[place].ordinal
            var life = archive.isReading ? Life.blank : self.life(of: tickets[place])
            var number = archive.isReading ? 0 : tickets[place].number
            archive.number(&ordinal)
            life.walk(&archive)
            archive.number(&number)
            guard archive.isReading else { continue }
            guard !archive.isDamaged, append(ordinal: ordinal, life: life, number: number) else {
                return archive.refuse()
            }
        }
    }
}

extension ClusterMessage: Archived {
    static var blank: ClusterMessage {
        ClusterMessage(sender: .blank, destination: .all, epoch: .zero, body: .election)
    }

    mutating func walk(_ archive: inout Archive) {
        archive.walk(
            coded: &self, encode: { message, bytes in message.encode(into: &bytes) },
            decode: { bytes in
                do throws(ClusterMessageError) { return try ClusterMessage(bytes) } catch { return nil }
            })
    }
}

extension ClusterMessage.Body {
    /// What is a body, or a part of one, in the bytes of a message that nobody has sent.
    fileprivate mutating func walk(_ archive: inout Archive) {
        var message = ClusterMessage.blank
        message.body = self
        message.walk(&archive)
        self = message.body
    }
}

extension TrackerReport: Archived {
    static var blank: TrackerReport { TrackerReport() }

    mutating func walk(_ archive: inout Archive) {
        var body = ClusterMessage.Body.report(self)
        body.walk(&archive)
        if case .report(let report) = body { self = report } else { archive.refuse() }
    }
}

extension Announce: Archived {
    static var blank: Announce { Announce(infoHash: .blank, peerID: .blank, left: 0, port: 0) }

    mutating func walk(_ archive: inout Archive) {
        infoHash.walk(&archive)
        peerID.walk(&archive)
        downloaded.walk(&archive)
        left.walk(&archive)
        var number = event.rawValue
        number.walk(&archive)
        numWant.walk(&archive)
        port.walk(&archive)
        guard archive.isReading else { return }
        if let read = AnnounceEvent(rawValue: number) { event = read } else { archive.refuse() }
    }
}

extension ForwardedRequest: Archived {
    static var blank: ForwardedRequest { ForwardedRequest(number: 0, source: .unspecified, content: .blank) }

    mutating func walk(_ archive: inout Archive) {
        number.walk(&archive)
        source.walk(&archive)
        content.walk(&archive)
    }
}

/// Not as it goes between trackers: there, an announce lacks what its own tracker alone needs to know.
extension ForwardedRequest.Content: Archived {
    static var blank: ForwardedRequest.Content { .datagram([]) }

    mutating func walk(_ archive: inout Archive) {
        var (tag, bytes): (UInt8, [UInt8])
        var (announce, infoHashes): (Announce, [InfoHash]) = (.blank, [])
        switch self {
        case .datagram(let datagram): (tag, bytes) = (0, datagram)
        case .announce(let given, let passkey): (tag, bytes, announce) = (1, passkey, given)
        case .scrape(let given, let passkey): (tag, bytes, infoHashes) = (2, passkey, given)
        }
        tag = archive.tag(tag)
        archive.walk(bytes: &bytes)
        switch tag {
        case 0: self = .datagram(bytes)
        case 1:
            announce.walk(&archive)
            self = .announce(announce, passkey: bytes)
        case 2:
            infoHashes.walk(&archive)
            self = .scrape(infoHashes, passkey: bytes)
        default: archive.refuse()
        }
    }
}

extension AnsweredRequest: Archived {
    static var blank: AnsweredRequest { AnsweredRequest(number: 0, content: .refusal(0)) }

    mutating func walk(_ archive: inout Archive) {
        var body = ClusterMessage.Body.answered([self])
        body.walk(&archive)
        if case .answered(let answers) = body, answers.count == 1 { self = answers[0] } else { archive.refuse() }
    }
}

extension ConsoleChange: Archived {
    static var blank: ConsoleChange { .removeAccount(name: [], expected: .any) }

    mutating func walk(_ archive: inout Archive) {
        var body = ClusterMessage.Body.order(number: 0, .change(self))
        body.walk(&archive)
        if case .order(_, .change(let change)) = body { self = change } else { archive.refuse() }
    }
}

extension Account: Archived {
    static var blank: Account { Account(name: [], role: .viewer, origin: .console) }

    mutating func walk(_ archive: inout Archive) {
        archive.walk(
            coded: &self, encode: { account, bytes in account.encode(into: &bytes) },
            decode: { bytes in
                var reader = ByteReader(bytes)
                do throws(OutOfBytes) { return try Account(&reader) } catch { return nil }
            })
    }
}

extension Session: Archived {
    static var blank: Session {
        // There is no `Bytes32` but of bytes.
        guard let key = Bytes32([UInt8](repeating: 0, count: 32)) else { preconditionFailure("32 bytes are a key") }
        return Session(key: key, account: [], expires: 0)
    }

    mutating func walk(_ archive: inout Archive) {
        archive.walk(
            coded: &self, encode: { session, bytes in session.encode(into: &bytes) },
            decode: { bytes in
                var reader = ByteReader(bytes)
                do throws(OutOfBytes) { return try Session(&reader) } catch { return nil }
            })
    }
}

extension TorrentFileHead: Archived {
    static var blank: TorrentFileHead { TorrentFile.blankHead }

    mutating func walk(_ archive: inout Archive) {
        archive.walk(
            coded: &self, encode: { head, bytes in head.encode(into: &bytes) },
            decode: { bytes in
                var reader = ByteReader(bytes)
                do throws(OutOfBytes) { return try TorrentFileHead(&reader) } catch { return nil }
            })
    }
}
