// Which program a peer is, by its id.

import Primitives
import Testing
import Wire

@Suite("Client names")
struct ClientNameTests {
    static let programs: [(id: String, name: String?)] = [
        ("-qB4520-abcdefghijkl", "qBittorrent 4.5.2"), ("-TR300Z-abcdefghijkl", "Transmission 3.00"),
        ("-lt0D60-abcdefghijkl", "libTorrent (rTorrent) 0.13.6"), ("M7-9-2--abcdefghijkl", "BitTorrent 7.9.2"),
        ("A2-1-36-0-abcdefghij", "aria2 1.36.0"), ("-XX0000-abcdefghijkl", nil),
        ("-qB\u{1}\u{2}\u{3}\u{4}-abcdefghijkl", "qBittorrent"),
        ("<script>alert(1)</sc", nil), ("M<-9-2--abcdefghijkl", nil),
    ]

    @Test(arguments: programs)
    func `a peer id tells the program, where it does`(_ program: (id: String, name: String?)) {
        #expect(ClientName.of(PeerID(Bytes20(Array(program.id.utf8))!)) == program.name)
    }

    @Test func `our own id tells our name and version`() {
        #expect(ClientName.of(PeerID.own { UInt8(97 + $0) }) == "Swarmkeeper 0.1.0")
        #expect(PeerID.own { UInt8(97 + $0) }.bytes.bytes == Array("-SW0100-abcdefghijkl".utf8))
    }
}
