// Passkeys of accounts.

import Primitives
import Testing
import TrackerLogic
import Wire

@Suite("Passkeys of accounts")
struct PasskeyTests {
    private static let client = SocketAddress.v4(9)
    private static let infoHash = InfoHash.numbered(1)

    private func key(_ text: String) -> [UInt8] { [UInt8](ascii: text) }

    /// A private tracker, with a user of a file and an admin.
    private func harness(_ accounts: Account...) throws -> NodeHarness {
        var harness = NodeHarness()
        harness.setAccess(AccessRules(mode: .private, users: [User(name: "file", passkey: key("of-a-file"))]))
        try harness.done(.putAccount(.test("root", .admin), expected: .any))
        for account in accounts { try harness.done(.putAccount(account, expected: .any)) }
        return harness
    }

    /// Whether a passkey lets in: over UDP by the options of BEP 41, and over HTTP to announce and to scrape.
    private func letsIn(_ passkey: String, _ harness: NodeHarness) throws -> Bool {
        var harness = harness
        let udp = try harness.announce(Self.infoHash, from: Self.client, urlData: key("/\(passkey)/announce")).errorText
        let announce = ClientRequest.Content.announce(
            Announce(infoHash: Self.infoHash, peerID: .zero, left: 1, port: 1))
        let told = try [announce, .scrape([Self.infoHash])].map { content -> Bool in
            let answer = try harness.request(content, from: Self.client, passkey: key(passkey))
            if case .failure(let refusal) = answer {
                #expect(refusal == .passkeyUnknown)
                return false
            }
            return true
        }
        #expect(udp == nil || udp == Refusal.passkeyUnknown.clientText)
        #expect(told == [udp == nil, udp == nil], "all ways are judged alike")
        return udp == nil
    }

    @Test func `an account's passkey lets in until it is another, is taken away, or the account is gone`() throws {
        var harness = try harness(.test("ann", passkey: "first-key"))
        #expect(try letsIn("first-key", harness))
        #expect(try letsIn("of-a-file", harness))
        #expect(try !letsIn("nobodys-key", harness))
        try harness.done(.putAccount(.test("ann", .uploader, passkey: "first-key"), expected: .any))
        #expect(try letsIn("first-key", harness), "another role is the same passkey")
        try harness.done(.putAccount(.test("ann", passkey: "second-key"), expected: .any))
        #expect(try !letsIn("first-key", harness))
        #expect(try letsIn("second-key", harness))
        try harness.done(.putAccount(.test("ann"), expected: .any))
        #expect(try !letsIn("second-key", harness))
        try harness.done(.putAccount(.test("ann", passkey: "third-key"), expected: .any))
        #expect(try letsIn("third-key", harness))
        try harness.done(.removeAccount(name: key("ann"), expected: .any))
        #expect(try !letsIn("third-key", harness))
        // And is free for another one.
        try harness.done(.putAccount(.test("bob", passkey: "third-key"), expected: .any))
        #expect(try letsIn("third-key", harness))
    }

    @Test func `where the tracker is not private, nobody needs one, and all rules hold for all`() throws {
        var harness = try harness(.test("ann", passkey: "first-key"))
        harness.setAccess(AccessRules(mode: .deny, infoHashes: [Self.infoHash]))
        let reply = try harness.announce(Self.infoHash, from: Self.client, urlData: key("/first-key/announce"))
        #expect(reply.errorText == Refusal.infoHashDenied.clientText)
        harness.setAccess(AccessRules())
        #expect(try harness.announce(Self.infoHash, from: Self.client).errorText == nil)
    }

    @Test func `a passkey that another has is refused, be it an account's or a user's`() throws {
        var harness = try harness(.test("ann", passkey: "first-key"), .test("bob"))
        let refused = ChangeOutcome.refused("another has this passkey")
        for taken in ["first-key", "of-a-file"] {
            #expect(harness.change(.putAccount(.test("bob", passkey: taken), expected: .any)) == refused)
            #expect(harness.change(.putAccount(.test("new", passkey: taken), expected: .any)) == refused)
        }
        try harness.done(.putAccount(.test("ann", .operator, passkey: "first-key"), expected: .any))
        for passkey in ["", "announce", "with/slash", "with blank", String(repeating: "k", count: 65)] {
            guard case .refused = harness.change(.putAccount(.test("bob", passkey: passkey), expected: .any)) else {
                Issue.record("\(passkey) is taken")
                continue
            }
        }
    }

    @Test func `whatever the log says, a passkey is one account's: that of who had it first`() throws {
        var state = try harness(.test("ann", passkey: "first-key")).node.state
        try state.apply(
            [
                .console(.putAccount(.test("bob", passkey: "first-key"))),
                .console(.mergeAccount(.test("eve", passkey: "first-key"), at: .max)),
            ], at: UInt32(NodeHarness.wallStart / 1000) + 9)
        func passkey(_ name: String, _ state: ReplicatedState) -> [UInt8]? {
            state.accounts.find(key(name))?.account.passkey
        }
        for state in [state, try state.readBack()] {
            #expect(passkey("ann", state) == key("first-key"))
            #expect(state.accounts.find(key("bob")) != nil && passkey("bob", state) == nil)
            #expect(state.accounts.find(key("eve")) != nil && passkey("eve", state) == nil)
        }
        try state.apply([.console(.removeAccount(name: key("ann")))], at: UInt32(NodeHarness.wallStart / 1000) + 10)
        #expect(!state.accounts.know(passkey: key("first-key")))
    }

    @Test func `it is written down, read back, and shows in the digest`() throws {
        var harness = try harness(.test("ann"))
        let before = harness.node.state.digest
        try harness.done(.putAccount(.test("ann", passkey: "first-key"), expected: .any))
        #expect(harness.node.state.digest != before)
        let copy = try harness.node.state.readBack()
        #expect(copy.digest == harness.node.state.digest)
        #expect(copy.accounts.know(passkey: key("first-key")))
        #expect(!copy.accounts.know(passkey: key("second-key")))
        #expect(try harness.disk.restored().state.accounts.know(passkey: key("first-key")))
    }

    @Test func `an account of a file has a passkey of the console, and keeps it when the file is read again`() throws {
        var harness = try harness()
        func read(_ accounts: Account...) {
            harness.step(.commandReceived(.setFileAccounts(accounts)))
            harness.completeWrites()
        }
        read(.test("fay"), .test("gus"))
        try harness.done(.putAccount(.test("fay", origin: .file, passkey: "first-key"), expected: .any))
        read(.test("fay", .uploader), .test("gus"))
        let kept = harness.node.state.accounts.find(key("fay"))?.account
        #expect(kept == .test("fay", .uploader, origin: .file, passkey: "first-key"))
        #expect(try letsIn("first-key", harness))
        read(.test("gus"))
        #expect(try !letsIn("first-key", harness))
    }
}
