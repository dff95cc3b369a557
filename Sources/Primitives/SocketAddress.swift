/// An IP address with a port, of either family, by value.
///
/// IPv4 is kept as `::ffff:a.b.c.d` (RFC 4291, 2.5.5.2), so that one client has one address whichever socket
/// heard it.
@frozen
public struct SocketAddress: Sendable, Hashable {
    /// The first eight address bytes, most significant first; 0 for IPv4.
    public var high: UInt64
    /// The last eight address bytes, most significant first; 0x0000_FFFF_aabb_ccdd for the IPv4 address a.b.c.d.
    public var low: UInt64
    /// The zone of a link-local IPv6 address; 0 elsewhere.
    public var scope: UInt32
    /// In the host's order; 0 where a port means nothing, or the kernel is to choose one.
    public var port: UInt16

    /// Takes the fields as they are.
    @inlinable
    public init(high: UInt64, low: UInt64, scope: UInt32 = 0, port: UInt16) {
        self.high = high
        self.low = low
        self.scope = scope
        self.port = port
    }

    /// An IPv4 address, whose first byte is the most significant.
    @inlinable
    public init(ipv4: UInt32, port: UInt16) {
        self.init(high: 0, low: 0xFFFF_0000_0000 | UInt64(ipv4), port: port)
    }

    /// No address at all: the source of a reply that the kernel may choose.
    public static let unspecified = SocketAddress(high: 0, low: 0, port: 0)

    /// Whether the address lies in `::ffff:0:0/96`, where IPv4 addresses are kept.
    @inlinable
    public var isIPv4: Bool { high == 0 && low &>> 32 == 0xFFFF }

    /// The address as one number; meaningful where `isIPv4`.
    @inlinable
    public var ipv4: UInt32 { UInt32(truncatingIfNeeded: low) }

    /// 127.0.0.0/8 and `::1`.
    public var isLoopback: Bool {
        isIPv4 ? ipv4 >> 24 == 127 : (high == 0 && low == 1)
    }

    /// `0.0.0.0` and `::`, with whatever port.
    public var isUnspecified: Bool {
        isIPv4 ? ipv4 == 0 : (high == 0 && low == 0)
    }
}

extension SocketAddress: CustomStringConvertible {
    /// `192.0.2.1:6969` or `[2001:db8::1]:6969`.
    public var description: String { isIPv4 ? "\(host):\(port)" : "[\(host)]:\(port)" }

    /// The address without its port, in the form of RFC 5952.
    public var host: String {
        if isIPv4 {
            return "\(ipv4 >> 24).\(ipv4 >> 16 & 255).\(ipv4 >> 8 & 255).\(ipv4 & 255)"
        }
        let groups = (0..<8).map { index in
            UInt16(truncatingIfNeeded: (index < 4 ? high : low) >> UInt64(48 - 16 * (index & 3)))
        }
        // The longest run of two or more zero groups becomes "::", the first of equals.
        var best = 0..<0
        var start = 0
        while start < 8 {
            var end = start
            while end < 8, groups[end] == 0 { end += 1 }
            if end - start > max(best.count, 1) { best = start..<end }
            start = max(end, start + 1)
        }
        func text(_ part: ArraySlice<UInt16>) -> String {
            part.map { String($0, radix: 16) }.joined(separator: ":")
        }
        let head = text(groups[..<best.lowerBound])
        let tail = text(groups[best.upperBound...])
        let address = best.isEmpty ? tail : "\(head)::\(tail)"
        return scope == 0 ? address : "\(address)%\(scope)"
    }

    /// Reads `192.0.2.1` or `2001:db8::1`: no names, no port, no zone; nil for anything else.
    public init?(host: some StringProtocol, port: UInt16) {
        if host.utf8.contains(UInt8(ascii: ":")) {
            guard let (high, low) = SocketAddress.ipv6(host) else { return nil }
            self.init(high: high, low: low, port: port)
        } else {
            guard let address = SocketAddress.ipv4(host) else { return nil }
            self.init(ipv4: address, port: port)
        }
    }

    private static func ipv4(_ text: some StringProtocol) -> UInt32? {
        let parts = text.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 4 else { return nil }
        var address: UInt32 = 0
        for part in parts {
            // No leading zeros: some would read them as octal.
            guard part.utf8.allSatisfy({ (48...57).contains($0) }), part.utf8.count == 1 || part.utf8.first != 48,
                let byte = UInt8(part)
            else { return nil }
            address = address << 8 | UInt32(byte)
        }
        return address
    }

    /// `UInt16(_:radix:)` alone would take a sign.
    private static func isHexadecimal(_ byte: UInt8) -> Bool {
        (48...57).contains(byte) || (65...70).contains(byte) || (97...102).contains(byte)
    }

    private static func ipv6(_ text: some StringProtocol) -> (UInt64, UInt64)? {
        /// The groups of one side of "::"; the last of all may be a dotted IPv4 address.
        func groups(_ side: Substring, isLast: Bool) -> [UInt16]? {
            guard !side.isEmpty else { return [] }
            var result: [UInt16] = []
            let parts = side.split(separator: ":", omittingEmptySubsequences: false)
            for (index, part) in parts.enumerated() {
                if isLast, index == parts.count - 1, part.utf8.contains(UInt8(ascii: ".")) {
                    guard let address = ipv4(part) else { return nil }
                    result += [UInt16(address >> 16), UInt16(address & 0xFFFF)]
                } else {
                    guard (1...4).contains(part.utf8.count), part.utf8.allSatisfy(isHexadecimal),
                        let group = UInt16(part, radix: 16)
                    else { return nil }
                    result.append(group)
                }
            }
            return result
        }
        let characters = Array(text.utf8)
        var gap: Int?
        var index = 0
        while index + 1 < characters.count {
            if characters[index] == UInt8(ascii: ":"), characters[index + 1] == UInt8(ascii: ":") {
                guard gap == nil else { return nil }
                gap = index
                index += 1
            }
            index += 1
        }
        var all: [UInt16]
        if let gap {
            let left = Substring(decoding: characters[..<gap], as: UTF8.self)
            let right = Substring(decoding: characters[(gap + 2)...], as: UTF8.self)
            guard let head = groups(left, isLast: false), let tail = groups(right, isLast: true),
                head.count + tail.count < 8
            else { return nil }
            all = head + Array(repeating: 0, count: 8 - head.count - tail.count) + tail
        } else {
            guard let whole = groups(Substring(text), isLast: true) else { return nil }
            all = whole
        }
        guard all.count == 8 else { return nil }
        func number(_ part: ArraySlice<UInt16>) -> UInt64 { part.reduce(0) { $0 << 16 | UInt64($1) } }
        return (number(all[..<4]), number(all[4...]))
    }
}
