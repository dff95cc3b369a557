// Who has which address in the simulated world.

import Primitives
import TrackerLogic

/// Who has which address in the simulated world; ports tell who is who, for addresses may be shared.
enum AddressPlan {
    private static let nodePort: UInt16 = 6969
    /// Clients, scrapers and strangers send from this port on.
    private static let firstPort: UInt16 = 20_000
    /// Clients listen this much above the port they send from.
    static let listeningOffset: UInt16 = 10_000
    private static let visitors: UInt32 = 0x0AC8_0000  // 10.200.0.0

    static func node(_ number: Int, isIPv6: Bool) -> SocketAddress {
        isIPv6
            ? SocketAddress(high: 0x2001_0DB8_0000_0001, low: UInt64(number + 1), port: nodePort)
            : SocketAddress(ipv4: 0x0A00_0001 + UInt32(number) << 8, port: nodePort)
    }

    /// Where a client, scraper or stranger is: `place` counts all of them, and `house` the addresses that they share.
    static func client(_ place: Int, house: Int, isIPv6: Bool) -> SocketAddress {
        let port = firstPort + UInt16(place)
        return isIPv6
            ? SocketAddress(high: 0x2001_0DB8_0000_0002, low: UInt64(house + 1), port: port)
            : SocketAddress(ipv4: 0x0A01_0001 + UInt32(house) << 4, port: port)
    }

    /// The place of whoever may have this address.
    static func place(of address: SocketAddress) -> Int { Int(address.port) - Int(firstPort) }

    private static let visitors6: UInt64 = 0x2001_0DB8_0000_0003

    static func visitor(_ number: Int, isIPv6: Bool = false) -> SocketAddress {
        let port = firstPort + UInt16(number)
        return isIPv6
            ? SocketAddress(high: visitors6, low: UInt64(number + 1), port: port)
            : SocketAddress(ipv4: visitors + UInt32(number), port: port)
    }

    /// Where all visitors are.
    static let visitorPrefixes = ["10.200.0.0/16", "2001:db8:0:3::/64"].compactMap { AddressPrefix($0) }

    static func isVisitor(_ address: SocketAddress) -> Bool {
        address.isIPv4 ? address.ipv4 & 0xFFFF_0000 == visitors : address.high == visitors6
    }
}
