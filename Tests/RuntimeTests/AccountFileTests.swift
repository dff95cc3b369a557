import Settings
import Testing
import TrackerLogic
import Web
import Wire

/// Accounts in a file, as people and `tracker user hash` write them.
@Suite("Account files")
struct AccountFileTests {
    let directory: TemporaryDirectory

    init() throws { directory = try TemporaryDirectory() }

    private static let hash = "$scrypt$ln=15,r=8,p=3$AAECAwQFBgcICQoLDA0ODw$\(String(repeating: "A", count: 43))"

    private func read(_ text: String) throws -> [Account] { try AccountFile.read(directory.write("accounts", text)) }

    private func problems(_ text: String) -> [String] {
        do {
            _ = try read(text)
            return []
        } catch let error as TextFileError {
            return error.description.replacing(directory.path("") + "/", with: "").split(separator: "\n").map(
                String.init)
        } catch {
            return ["\(error)"]
        }
    }

    @Test
    func `an account is a name, a role and a hash, with comments and blank lines`() throws {
        let accounts = try read("# who\n\nada admin \(Self.hash)\r\n  b.b@x\tviewer   \(Self.hash) # bob\n")
        let password = PasswordHash(
            log2N: 15, r: 8, p: 3, salt: Array(0...15), hash: [UInt8](repeating: 0, count: 32))
        #expect(
            accounts == [
                Account(name: Array("ada".utf8), role: .admin, origin: .file, password: password),
                Account(name: Array("b.b@x".utf8), role: .viewer, origin: .file, password: password),
            ])
        #expect(accounts.compactMap(AccountFile.line) == ["ada admin \(Self.hash)", "b.b@x viewer \(Self.hash)"])
        #expect(try read("").isEmpty)
    }

    @Test
    func `a hash that another program made is read, and lets in`() async throws {
        // Of passlib's documentation: scrypt.hash("password").
        let hash = "$scrypt$ln=16,r=8,p=1$aM15713r3Xsvxbi31lqr1Q$nFNh2CVHVjNldFVKDHDlm4CbdRSCdEBsjjJxD+iCs5E"
        let password = try #require(read("ada admin \(hash)").first?.password)
        #expect(await PasswordHasher().isRight("password", password) == true)
        #expect(await PasswordHasher().isRight("Password", password) == false)
    }

    @Test(arguments: 8...64)
    func `what is written is read back, whatever the lengths`(count: Int) throws {
        var random = SystemRandomNumberGenerator()
        func bytes(_ count: Int) -> [UInt8] { (0..<count).map { _ in UInt8.random(in: 0...255, using: &random) } }
        let account = Account(
            name: Array("ada".utf8), role: .operator, origin: .file,
            password: PasswordHash(log2N: 10, r: 9, p: 16, salt: bytes(count), hash: bytes(max(16, count))))
        #expect(try read(#require(AccountFile.line(account))) == [account])
    }

    @Test
    func `what is wrong is told with file and line, all at once, and no hash is shown`() {
        let salt = "AAECAwQFBgcICQoLDA0ODw"
        let key = String(repeating: "A", count: 43)
        let told = problems(
            """
            ada admin \(Self.hash)
            lonely
            bob the builder \(Self.hash)
            -x viewer \(Self.hash)
            cora king \(Self.hash)
            ada viewer \(Self.hash)
            dan viewer hunter2hunter2
            eve viewer $argon2id$ln=15,r=8,p=3$\(salt)$\(key)
            fay viewer $scrypt$ln=15,r=8,p=3$\(salt)=$\(key)
            gus viewer $scrypt$ln=15,r=8,p=3$\(salt)$\(key)BB
            hal viewer $scrypt$ln=015,r=8,p=3$\(salt)$\(key)
            ida viewer $scrypt$r=8,ln=15,p=3$\(salt)$\(key)
            jan viewer $scrypt$ln=22,r=8,p=3$\(salt)$\(key)
            kim viewer $scrypt$ln=15,r=8,p=17$\(salt)$\(key)
            lea viewer $scrypt$ln=15,r=8,p=3$AAEC$\(key)
            """)
        let form = "is not like $scrypt$ln=15,r=8,p=3$SALT$HASH, with base64 without ="
        let line = "the line is not a name, a role and a hash; make one with: tracker user hash NAME --role ROLE"
        let greedy =
            "wants more than a tracker gives a log-in: 256 MiB (128 r 2^ln), p 16, 64 bytes of salt and of hash; "
            + "no number is 0"
        let parameters = "has other parameters than ln=NUMBER,r=NUMBER,p=NUMBER"
        #expect(
            told == [
                "accounts:2: \(line)", "accounts:3: \(line)",
                "accounts:4: \"-x\" is no name: \(Account.nameRule)",
                "accounts:5: \"cora\" has the role \"king\"; write one of viewer, uploader, operator, admin",
                "accounts:6: \"ada\" already has line 1",
                "accounts:7: the hash of \"dan\" \(form)", "accounts:8: the hash of \"eve\" \(form)",
                "accounts:9: the hash of \"fay\" \(form)", "accounts:10: the hash of \"gus\" \(form)",
                "accounts:11: the hash of \"hal\" \(parameters)", "accounts:12: the hash of \"ida\" \(parameters)",
                "accounts:13: the hash of \"jan\" \(greedy)", "accounts:14: the hash of \"kim\" \(greedy)",
                "accounts:15: the hash of \"lea\" is too short: a salt has 8 bytes or more, a hash 16",
            ])
        #expect(!told.joined().contains("hunter2") && !told.joined().contains(key))
    }

    @Test
    func `there is a bound on accounts, and files that are not there are told`() throws {
        let many = (0...Accounts.Bounds.accounts).map { "u\($0) viewer \(Self.hash)" }.joined(separator: "\n")
        #expect(problems(many) == ["accounts:10001: the file has more than 10_000 accounts"])
        var configuration = ServerConfiguration()
        #expect(try configuration.rules() == ServerConfiguration.Rules())
        configuration.accountsFile = directory.path("none")
        #expect(throws: TextFileError.self) { try configuration.rules() }
    }
}
