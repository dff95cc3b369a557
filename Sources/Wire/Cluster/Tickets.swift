// Who waits for the updates of an entry.

import Primitives

/// One request that waits for the update with this ordinal.
@frozen
public struct Ticket: Sendable, Hashable {
    /// Counts the entry's updates from 0.
    public var ordinal: UInt32
    /// Whose client it is: a place among the lives of the block.
    public var life: UInt8
    /// The request's number there.
    public var number: UInt64

    /// Takes the fields as they are.
    @inlinable
    public init(ordinal: UInt32, life: UInt8, number: UInt64) {
        self.ordinal = ordinal
        self.life = life
        self.number = number
    }
}

/// Who waits for the updates of an entry: behind the updates, and part of the entry's value.
///
///     count of lives, lives (id, incarnation), then tickets in rising order of ordinal: ordinal, life, number
///
/// A request belongs to the tracker that heard it. It alone answers, when it applies the entry; so a new master need
/// not know which requests its predecessor took, and no reply crosses the bus. With a multicast group, where all heard
/// the request, the life is `Tickets.group`, the number names the request, and the master of the moment answers.
///
/// An entry without updates stands in the place of one that the vote refused, and carries its tickets: each tracker
/// that applies it refuses the requests of its own that waited.
public struct Tickets: Sendable, Hashable {
    /// Stands for all trackers of a multicast group.
    public static let group = Life(id: 0, incarnation: 0)
    /// Trackers whose requests one entry may hold.
    public static let maxLives = 255
    static let ticketByteCount = 13

    /// Whose requests there are: each tracker's life once, at most `maxLives`, in the order of their first ticket.
    public private(set) var lives: [Life] = []
    /// Who waits for which update, in rising order of ordinals.
    public private(set) var tickets: [Ticket] = []

    /// Nobody waits.
    public init() {}

    /// Whether nobody waits.
    public var isEmpty: Bool { tickets.isEmpty }
    /// How many requests wait.
    public var count: Int { tickets.count }

    /// The life of the tracker that has a ticket's request; the ticket must be one of these.
    public func life(of ticket: Ticket) -> Life { lives[Int(ticket.life)] }

    /// Adds one who waits; ordinals come in rising order.
    ///
    /// - Parameters:
    ///   - ordinal: the place among the entry's updates, from 0, of the one that is waited for.
    ///   - life: of the tracker that answers; `Tickets.group` for requests of a multicast group.
    ///   - number: the request's number in that life.
    /// - Returns: false where the tickets have `maxLives` other lives already; then nothing is added.
    public mutating func append(ordinal: UInt32, life: Life, number: UInt64) -> Bool {
        var place = lives.count - 1
        while place >= 0, lives[place] != life { place -= 1 }
        if place < 0 {
            guard lives.count < Tickets.maxLives else { return false }
            lives.append(life)
            place = lives.count - 1
        }
        tickets.append(Ticket(ordinal: ordinal, life: UInt8(place), number: number))
        return true
    }

    /// Forgets all tickets and keeps their room.
    public mutating func removeAll() {
        lives.removeAll(keepingCapacity: true)
        tickets.removeAll(keepingCapacity: true)
    }

    /// Appends the block to an entry whose updates are complete; nothing where nobody waits.
    public func encode(into bytes: inout [UInt8]) {
        guard !tickets.isEmpty else { return }
        bytes.reserveCapacity(bytes.count + 1 + lives.count * 12 + tickets.count * Tickets.ticketByteCount)
        bytes.append(UInt8(lives.count))
        for life in lives {
            bytes.append(bigEndian: life.id)
            bytes.append(bigEndian: life.incarnation)
        }
        for ticket in tickets {
            bytes.append(bigEndian: ticket.ordinal)
            bytes.append(ticket.life)
            bytes.append(bigEndian: ticket.number)
        }
    }

    /// Reads the block of an entry; empty where it has none.
    ///
    /// - Parameters:
    ///   - bytes: the whole entry.
    ///   - header: its header, as read from the same bytes.
    /// - Throws: `EntryDamaged` where the block is cut, or its ordinals do not rise.
    public init(_ bytes: [UInt8], _ header: EntryHeader) throws(EntryDamaged) {
        let start = Int(header.ticketsOffset)
        guard start < bytes.count else { return }
        var reader = ByteReader(bytes, from: start)
        do throws(OutOfBytes) {
            for _ in 0..<(try reader.u8()) {
                lives.append(Life(id: try reader.u32(), incarnation: try reader.u64()))
            }
            let (count, rest) = (bytes.count - reader.offset).quotientAndRemainder(dividingBy: Tickets.ticketByteCount)
            guard rest == 0 else { throw OutOfBytes() }
            tickets.reserveCapacity(count)
            var last: UInt32?
            for _ in 0..<count {
                let ticket = Ticket(ordinal: try reader.u32(), life: try reader.u8(), number: try reader.u64())
                guard Int(ticket.life) < lives.count,
                    ticket.ordinal < header.updateCount || header.updateCount == 0,
                    last.map({ $0 < ticket.ordinal }) ?? true
                else { throw OutOfBytes() }
                last = ticket.ordinal
                tickets.append(ticket)
            }
        } catch {
            throw EntryDamaged()
        }
    }
}
