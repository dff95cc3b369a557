// Which program a peer is, by its id.

import Primitives

/// Which program a peer is, as its id says (BEP 20): nobody checks it, so it is for people to read.
public enum ClientName {
    /// Programs by the two letters between which and a dash four characters of version stand: `-qB4520-`.
    private static let programs: [(letters: String, name: String)] = [
        ("AG", "Ares"), ("AZ", "Vuze"), ("BC", "BitComet"), ("BE", "BitTorrent SDK"), ("BG", "BTGetit"),
        ("BI", "BiglyBT"), ("BL", "BitLord"), ("BN", "Baidu Netdisk"), ("BT", "BitTorrent"), ("BW", "BitWombat"),
        ("CT", "CTorrent"), ("DE", "Deluge"), ("EB", "EBit"), ("FD", "Free Download Manager"), ("FL", "Folx"),
        ("FW", "FrostWire"), ("GR", "GetRight"), ("GT", "anacrolix/torrent"), ("HL", "Halite"), ("KG", "KGet"),
        ("KT", "KTorrent"), ("LC", "LeechCraft"), ("LP", "Lphant"), ("LT", "libtorrent"),
        ("lt", "libTorrent (rTorrent)"), ("LW", "LimeWire"), ("MG", "MediaGet"), ("MR", "Miro"),
        ("PI", "PicoTorrent"), ("qB", "qBittorrent"), ("QD", "QQDownload"), ("RS", "Rufus"), ("SD", "Thunder"),
        ("SK", "Spark"), ("SW", "Swarmkeeper"), ("SZ", "Shareaza"), ("TB", "Torch"), ("TL", "Tribler"),
        ("TR", "Transmission"), ("TS", "Torrentstorm"), ("TX", "Tixati"), ("UM", "µTorrent for Mac"),
        ("UT", "µTorrent"), ("UW", "µTorrent Web"), ("WW", "WebTorrent"), ("WD", "WebTorrent Desktop"),
        ("XL", "Xunlei"), ("rq", "rqbit"), ("FX", "Freebox"),
    ]

    /// The program and its version; nil where the id does not say.
    public static func of(_ id: PeerID) -> String? {
        var bytes = Array(id.bytes.bytes)
        guard bytes.count == 20 else { return nil }
        bytes = bytes.map { (33...126).contains($0) ? $0 : 0 }
        if bytes[0] == UInt8(ascii: "-"), bytes[7] == UInt8(ascii: "-") {
            let letters = String(decoding: bytes[1...2], as: UTF8.self)
            guard let program = programs.first(where: { $0.letters == letters })?.name else { return nil }
            guard let version = version(bytes[3...6], isTransmission: letters == "TR") else { return program }
            return "\(program) \(version)"
        }
        // BitTorrent's first client: `M7-9-2--`.
        if bytes[0] == UInt8(ascii: "M"), bytes[2] == UInt8(ascii: "-") {
            let digits = bytes[1..<8].split(separator: UInt8(ascii: "-"))
            guard digits.count == 3, digits.allSatisfy({ $0.allSatisfy { (48...57).contains($0) } }) else { return nil }
            return "BitTorrent " + digits.map { String(decoding: $0, as: UTF8.self) }.joined(separator: ".")
        }
        if String(decoding: bytes[0...1], as: UTF8.self) == "A2" {
            let digits = bytes[2..<9].split(separator: UInt8(ascii: "-"))
            guard digits.count >= 3 else { return "aria2" }
            return "aria2 " + digits.prefix(3).map { String(decoding: $0, as: UTF8.self) }.joined(separator: ".")
        }
        return nil
    }

    /// The version of four characters: `4520` is 4.5.2, letters go on after 9, and Transmission's `300Z` is 3.00.
    private static func version(_ characters: ArraySlice<UInt8>, isTransmission: Bool) -> String? {
        let digits = characters.compactMap { character -> Int? in
            switch character {
            case 48...57: Int(character) - 48
            case 65...90: Int(character) - 55
            case 97...122: Int(character) - 87
            default: nil
            }
        }
        guard digits.count == 4 else { return nil }
        if isTransmission { return "\(digits[0]).\(digits[1])\(digits[2])" }
        return digits[3] == 0
            ? "\(digits[0]).\(digits[1]).\(digits[2])" : "\(digits[0]).\(digits[1]).\(digits[2]).\(digits[3])"
    }
}
