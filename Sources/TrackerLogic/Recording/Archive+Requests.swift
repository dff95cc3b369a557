// Requests that wait as bytes of an archive.

import Primitives
import Wire

extension BookedRequest.Kind: Archived { static var blank: BookedRequest.Kind { .connect } }

extension BookedRequest.Content: Archived {
    static var blank: BookedRequest.Content { .forgotten }

    mutating func walk(_ archive: inout Archive) {
        var (start, byteCount): (UInt64, Int) =
            if case .datagram(let start, let byteCount) = self { (start, byteCount) } else { (0, 0) }
        let tag: UInt8 =
            switch self {
            case .datagram: 0
            case .visit: 1
            case .forgotten: 2
            }
        switch archive.tag(tag) {
        case 0:
            start.walk(&archive)
            byteCount.walk(&archive)
            self = .datagram(start: start, byteCount: byteCount)
        case 1: self = .visit
        case 2: self = .forgotten
        default: archive.refuse()
        }
    }
}
