// What the URL of a request to the tracker asks for.

import Primitives
import Wire

/// What the URL of a request to the tracker asks for.
enum TrackerTarget: Equatable {
    case announce(passkey: [UInt8], query: [UInt8])
    case scrape(passkey: [UInt8], query: [UInt8])
    /// Somebody looks, with a browser.
    case root
    case unknown

    /// - Parameter target: path and query, still percent-encoded: `/announce?…`, `/announce/PASSKEY?…`,
    ///   `/PASSKEY/announce?…`, and the same with `scrape`.
    init(_ target: some StringProtocol) {
        let bytes = Array(target.utf8)
        let path = bytes.prefix { $0 != UInt8(ascii: "?") }
        let query = Array(bytes[path.endIndex...].dropFirst())
        let parts = path.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: true)
        switch parts.count {
        case 0:
            self = .root
        case 1:
            self = Self.named(parts[0], [], query) ?? .unknown
        case 2:
            let action = [(parts[0], parts[1]), (parts[1], parts[0])].lazy
                .compactMap { name, passkey in Self.decoded(passkey).flatMap { Self.named(name, $0, query) } }
            self = action.first ?? .unknown
        default:
            self = .unknown
        }
    }

    private static func named(_ name: ArraySlice<UInt8>, _ passkey: [UInt8], _ query: [UInt8]) -> TrackerTarget? {
        if name.elementsEqual("announce".utf8) { return .announce(passkey: passkey, query: query) }
        if name.elementsEqual("scrape".utf8) { return .scrape(passkey: passkey, query: query) }
        return nil
    }

    /// - Returns: nil for what is no passkey: too long, or wrongly encoded.
    private static func decoded(_ part: ArraySlice<UInt8>) -> [UInt8]? {
        var result: [UInt8] = []
        var rest = part
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "%") else {
                result.append(byte)
                continue
            }
            let digits = Substring(decoding: rest.prefix(2), as: UTF8.self)
            guard let value = Primitives.bytes(hexadecimal: digits), value.count == 1 else { return nil }
            result += value
            rest = rest.dropFirst(2)
        }
        return result.count <= HTTPAnnounceRequest.maxOpaqueByteCount ? result : nil
    }
}
