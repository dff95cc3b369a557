// Operators' orders on their way from the tracker that was asked to the master, and what came of them on the way back.

import Primitives

/// What an operator may ask of a cluster through any tracker's API; only its master can do it.
public enum ClusterOrder: Sendable, Hashable {
    /// Let the tracker with this id vote.
    case addMember(UInt32)
    /// Let the tracker with this id vote no more.
    case removeMember(UInt32)
    /// The same in one step: as many vote before as after.
    case replaceMember(UInt32, by: UInt32)
    /// Make the tracker with this id the master.
    case handOver(to: UInt32)
    /// All trackers of the cluster are to stop, in good order.
    case stop
    /// What people keep at the console is to change.
    case change(ConsoleChange)
    /// The master is to step down, so that a new one is elected.
    case elect
}

/// What came of an order.
public enum OrderOutcome: Sendable, Hashable {
    /// The ids that vote now.
    case members([UInt32])
    /// The role is given away.
    case handedOver
    /// The tracker that is to be master is it already.
    case isMaster
    /// The tracker with this id was master, and has stepped down.
    case steppedDown(UInt32)
    /// The trackers are being told to stop.
    case stopping
    /// In a sentence.
    case refused(String)
    /// Another order is on its way.
    case busy
    /// It may still come to pass.
    case late
    /// There is no node any more.
    case stopped
    /// Of a change at the console.
    case changed(ChangeOutcome)
}

extension ClusterOrder {
    func encode(into bytes: inout [UInt8]) {
        let (kind, first, second): (UInt8, UInt32, UInt32) =
            switch self {
            case .addMember(let id): (1, id, 0)
            case .removeMember(let id): (2, id, 0)
            case .replaceMember(let id, let other): (3, id, other)
            case .handOver(let id): (4, id, 0)
            case .stop: (5, 0, 0)
            case .change: (6, 0, 0)
            case .elect: (7, 0, 0)
            }
        bytes.append(kind)
        bytes.append(bigEndian: first)
        bytes.append(bigEndian: second)
        if case .change(let change) = self { change.encode(into: &bytes) }
    }

    init(_ reader: inout MessageReader) throws(ClusterMessageError) {
        switch (try reader.u8(), try reader.u32(), try reader.u32()) {
        case (1, let id, 0): self = .addMember(id)
        case (2, let id, 0): self = .removeMember(id)
        case (3, let id, let other): self = .replaceMember(id, by: other)
        case (4, let id, 0): self = .handOver(to: id)
        case (5, 0, 0): self = .stop
        case (6, 0, 0):
            self = .change(
                try reader.part { (bytes: inout ByteReader) throws(OutOfBytes) in try ConsoleChange(&bytes) })
        case (7, 0, 0): self = .elect
        default: throw .damaged
        }
    }
}

extension OrderOutcome {
    /// Members that an outcome may name: as many as a cluster may have.
    static let maxMembers = 64

    func encode(into bytes: inout [UInt8]) {
        switch self {
        case .members(let ids):
            bytes.append(1)
            bytes.append(shortCount: ids.count, atMost: OrderOutcome.maxMembers)
            for id in ids { bytes.append(bigEndian: id) }
        case .handedOver: bytes.append(2)
        case .isMaster: bytes.append(3)
        case .refused(let reason):
            bytes.append(4)
            ShortText(reason).encode(into: &bytes)
        case .busy: bytes.append(5)
        case .late: bytes.append(6)
        case .stopped: bytes.append(7)
        case .stopping: bytes.append(8)
        case .changed(let outcome):
            bytes.append(9)
            outcome.encode(into: &bytes)
        case .steppedDown(let id):
            bytes.append(10)
            bytes.append(bigEndian: id)
        }
    }

    init(_ reader: inout MessageReader) throws(ClusterMessageError) {
        switch try reader.u8() {
        case 1:
            var ids: [UInt32] = []
            for _ in 0..<(try reader.count(atMost: OrderOutcome.maxMembers)) { ids.append(try reader.u32()) }
            self = .members(ids)
        case 2: self = .handedOver
        case 3: self = .isMaster
        case 4: self = .refused("\(try ShortText(&reader))")
        case 5: self = .busy
        case 6: self = .late
        case 7: self = .stopped
        case 8: self = .stopping
        case 9: self = .changed(try ChangeOutcome(&reader))
        case 10: self = .steppedDown(try reader.u32())
        default: throw .damaged
        }
    }
}
