// Who may announce what: open, allow and deny lists, passkeys; over UDP with BEP 41, and over HTTP.

import Primitives
import Testing
import TrackerLogic
import Wire

extension NodeHarness {
    /// Brings access rules into force.
    mutating func setAccess(_ rules: AccessRules, _ location: SourceLocation = #_sourceLocation) {
        step(.commandReceived(.setAccess(rules)))
        completeWrites(location)
        #expect(node.state.access.mode == rules.mode, sourceLocation: location)
    }
}

@Suite("Access")
struct AccessTests {
    static let listed = InfoHash.numbered(1)
    static let unlisted = InfoHash.numbered(2)
    static let client = SocketAddress.v4(1)

    /// What a client is told, over both protocols: nil where it is welcome.
    private func refusal(
        _ harness: NodeHarness, _ infoHash: InfoHash, url: String = "/announce", passkey: String = "",
        _ location: SourceLocation = #_sourceLocation
    ) throws -> String? {
        var harness = harness
        let udp = try harness.announce(infoHash, from: Self.client, urlData: [UInt8](ascii: url), location).errorText
        let http = try harness.request(
            .announce(Announce(infoHash: infoHash, peerID: .zero, left: 1, port: 1)), from: Self.client,
            passkey: [UInt8](ascii: passkey), location)
        if case .failure(let refusal) = http {
            #expect(refusal.clientText == udp, sourceLocation: location)
        } else {
            #expect(udp == nil, sourceLocation: location)
        }
        return udp
    }

    @Test func `an open tracker takes any info hash`() throws {
        let harness = NodeHarness()
        #expect(try refusal(harness, Self.listed) == nil)
        #expect(try refusal(harness, Self.unlisted, url: "/whatever/announce", passkey: "whatever") == nil)
    }

    @Test func `with an allow list, only what is on it`() throws {
        var harness = NodeHarness()
        harness.setAccess(AccessRules(mode: .allow, infoHashes: [Self.listed, Self.listed]))
        #expect(try refusal(harness, Self.listed) == nil)
        #expect(try refusal(harness, Self.unlisted) == Refusal.infoHashNotAllowed.clientText)
        harness.setAccess(AccessRules(mode: .allow))
        #expect(try refusal(harness, Self.listed) == Refusal.infoHashNotAllowed.clientText)
    }

    @Test func `with a deny list, all but what is on it`() throws {
        var harness = NodeHarness()
        harness.setAccess(AccessRules(mode: .deny, infoHashes: [Self.listed]))
        #expect(try refusal(harness, Self.listed) == Refusal.infoHashDenied.clientText)
        #expect(try refusal(harness, Self.unlisted) == nil)
    }

    @Test func `what was refused leaves no trace`() throws {
        var harness = NodeHarness()
        harness.setAccess(AccessRules(mode: .deny, infoHashes: [Self.listed]))
        let before = harness.node.state
        _ = try harness.announce(Self.listed, from: Self.client)
        #expect(harness.node.state == before)
        #expect(harness.node.status.waitingRequests == 0)
    }

    private static let users = [
        User(name: "ann", passkey: [UInt8](ascii: "k3y-of-ann")),
        User(name: "bob", passkey: [UInt8](ascii: "0123456789abcdef0123456789abcdef")),
    ]

    /// A path and query, and what the tracker says to it.
    static let urls: [(String, Refusal?)] = [
        ("/k3y-of-ann/announce", nil),
        ("/announce/k3y-of-ann", nil),
        ("/announce?passkey=k3y-of-ann", nil),
        ("/announce?a=b&passkey=k3y-of-ann&c=d", nil),
        ("/announce?passkey=k3y-of-ann&passkey=wrong", nil),
        ("k3y-of-ann", nil),
        ("/0123456789abcdef0123456789abcdef/announce", nil),
        ("/announce", .passkeyMissing),
        ("/", .passkeyMissing),
        ("", .passkeyMissing),
        ("/announce?", .passkeyMissing),
        ("/announce?passkey=", .passkeyMissing),
        ("/announce?user=ann", .passkeyMissing),
        ("/k3y-of-an/announce", .passkeyUnknown),
        ("/k3y-of-ann2/announce", .passkeyUnknown),
        ("/K3Y-OF-ANN/announce", .passkeyUnknown),
        ("/ann/announce", .passkeyUnknown),
        ("/announce?passkey=ann", .passkeyUnknown),
        ("/announce?xpasskey=k3y-of-ann", .passkeyMissing),
        ("/wrong/announce?passkey=k3y-of-ann", nil),
        ("/k3y-of-ann/announce?passkey=wrong", .passkeyUnknown),
        ("/" + String(repeating: "x", count: 129) + "/announce", .passkeyMissing),
        (String(repeating: "/", count: 600) + "k3y-of-ann", nil),
    ]

    @Test(arguments: urls)
    func `over UDP, the passkey is found in the URL data of BEP 41`(_ url: String, _ expected: Refusal?) throws {
        var harness = NodeHarness()
        harness.setAccess(AccessRules(mode: .private, users: Self.users))
        let reply = try harness.announce(Self.unlisted, from: Self.client, urlData: [UInt8](ascii: url))
        #expect(reply.errorText == expected?.clientText)
    }

    @Test func `over HTTP, the passkey comes with the request`() throws {
        var harness = NodeHarness()
        harness.setAccess(AccessRules(mode: .private, users: Self.users))
        func answer(_ content: ClientRequest.Content, _ passkey: String) throws -> Answer.Content {
            try harness.request(content, from: Self.client, passkey: [UInt8](ascii: passkey))
        }
        let announce = ClientRequest.Content.announce(
            Announce(infoHash: Self.listed, peerID: .zero, left: 1, port: 1))
        #expect(try answer(announce, "") == .failure(.passkeyMissing))
        #expect(try answer(announce, "nobody") == .failure(.passkeyUnknown))
        #expect(try answer(.scrape([Self.listed]), "") == .failure(.passkeyMissing))
        #expect(try answer(.scrape([Self.listed]), "nobody") == .failure(.passkeyUnknown))
        guard case .announce = try answer(announce, "k3y-of-ann") else {
            Issue.record("a user is refused")
            return
        }
        #expect(try answer(.scrape([Self.listed]), "k3y-of-ann") == .scrape([SwarmCounts(leechers: 1)]))
    }

    /// Alone, and as the last of a cluster.
    @Test(arguments: [false, true])
    func `over UDP, a private tracker tells nobody its counts`(_ isClustered: Bool) throws {
        var configuration = NodeConfiguration.test
        if isClustered { configuration.cluster = ClusterProfile.classic.configuration(members: []) }
        var harness = NodeHarness(configuration)
        if isClustered {
            harness.step(.busConnected)
            harness.run(.seconds(10))
        }
        func scrape(_ location: SourceLocation = #_sourceLocation) throws -> TrackerReply {
            var bytes: [UInt8] = []
            ScrapeRequest(
                connectionID: try harness.connect(Self.client, location), transactionID: TransactionID(5),
                infoHashes: [Self.listed]
            ).encode(into: &bytes)
            let reply = harness.ask(bytes, from: Self.client, location)
            return try TrackerReply(try #require(reply, sourceLocation: location), isIPv6: false)
        }
        #expect(try scrape().errorText == nil)
        harness.setAccess(AccessRules(mode: .private, users: Self.users))
        #expect(try scrape().errorText == "private tracker: scrape over HTTP, with your passkey")
        harness.setAccess(AccessRules(mode: .allow))
        #expect(try scrape().errorText == nil)
    }

    @Test func `a user who is removed, or has a new passkey, is no longer let in with the old one`() throws {
        var harness = NodeHarness()
        harness.setAccess(AccessRules(mode: .private, users: Self.users))
        harness.setAccess(AccessRules(mode: .private, users: [User(name: "ann", passkey: [UInt8](ascii: "new"))]))
        #expect(try refusal(harness, Self.listed, url: "/new/announce", passkey: "new") == nil)
        for old in Self.users {
            let passkey = String(decoding: old.passkey, as: UTF8.self)
            #expect(
                try refusal(harness, Self.listed, url: "/\(passkey)/announce", passkey: passkey)
                    == Refusal.passkeyUnknown.clientText)
        }
    }

    @Test func `names are told apart by their bytes`() throws {
        var harness = NodeHarness()
        // The same to Swift's ==, not to a database.
        let composed = "\u{E9}"
        let decomposed = "e\u{301}"
        harness.setAccess(AccessRules(mode: .private, users: [User(name: composed, passkey: [UInt8](ascii: "key"))]))
        harness.setAccess(AccessRules(mode: .private, users: [User(name: decomposed, passkey: [UInt8](ascii: "key"))]))
        #expect(harness.node.state.access.userCount == 1)
        #expect(try refusal(harness, Self.listed, url: "/key/announce", passkey: "key") == nil)
    }

    @Test func `stopped is refused like any announce, and scrapes go on`() throws {
        var harness = NodeHarness()
        harness.fill(Self.listed, [(.v4(5), 0)])
        harness.setAccess(AccessRules(mode: .deny, infoHashes: [Self.listed]))
        let reply = try harness.announce(Self.listed, from: .v4(5), event: .stopped)
        #expect(reply.errorText == Refusal.infoHashDenied.clientText)
        #expect(try harness.request(.scrape([Self.listed]), from: Self.client) == .scrape([SwarmCounts(seeders: 1)]))
    }

    @Test func `every refusal is short, and plain ASCII`() {
        var code: UInt8 = 0
        var count = 0
        while let refusal = Refusal(rawValue: code) {
            let text = refusal.clientText
            #expect((1...90).contains(text.utf8.count), "\(text)")
            #expect(text.utf8.allSatisfy { (0x20..<0x7F).contains($0) }, "\(text)")
            code += 1
            count += 1
        }
        #expect(count >= 14)
    }
}
