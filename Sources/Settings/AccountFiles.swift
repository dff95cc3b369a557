// The file in which operators keep accounts of the console.

import Primitives
import TrackerLogic
import Wire

/// Accounts of the console in a file: `NAME ROLE HASH` a line, as `tracker user hash` prints it.
public enum AccountFile {
    /// Bytes of a salt and of a hash that may be written here, at least: less is guessed.
    private static let minByteCounts = (salt: 8, hash: 16)

    /// Reads accounts; blank lines and comments are as in a list of info hashes.
    ///
    /// - Parameter path: of the file.
    /// - Returns: the accounts in the order of the file, at most `Accounts.Bounds.accounts`.
    /// - Throws: every line that is wrong, also a name that was there before, or why the file cannot be read.
    public static func read(_ path: String) throws(TextFileError) -> [Account] {
        var accounts: [Account] = []
        var lineOfName: [[UInt8]: Int] = [:]
        try BoundedFile.forEachLine(path) { content, line in
            guard accounts.count < Accounts.Bounds.accounts else {
                return "the file has more than \(countText(Accounts.Bounds.accounts)) accounts"
            }
            switch account(String(decoding: content, as: UTF8.self)) {
            case .failure(let problem): return problem.words
            case .success(let account):
                if let earlier = lineOfName[account.name] {
                    return "\(quoted(String(decoding: account.name, as: UTF8.self))) already has line \(earlier)"
                }
                lineOfName[account.name] = line
                accounts.append(account)
                return nil
            }
        }
        return accounts
    }

    /// The line of an account; without a password there is none.
    public static func line(_ account: Account) -> String? {
        guard let password = account.password else { return nil }
        return "\(String(decoding: account.name, as: UTF8.self)) \(account.role.word) \(text(password))"
    }

    // MARK: - One line

    private struct Problem: Error {
        let words: String

        init(_ words: String) { self.words = words }
    }

    private static func account(_ line: String) -> Result<Account, Problem> {
        let words = line.split { $0 == " " || $0 == "\t" }
        // Not the line itself: messages end up in logs, and a hash can be tried against lists of passwords.
        guard words.count == 3 else {
            return .failure(
                Problem("the line is not a name, a role and a hash; make one with: tracker user hash NAME --role ROLE"))
        }
        let (name, role) = (String(words[0]), String(words[1]))
        guard Account.isName(name) else { return .failure(Problem("\(quoted(name)) is no name: \(Account.nameRule)")) }
        guard let role = AccountRole(word: role) else {
            return .failure(
                Problem(
                    "\(quoted(name)) has the role \(quoted(role)); write one of "
                        + AccountRole.allCases.map(\.word).joined(separator: ", ")))
        }
        return password(words[2]).map { Account(name: Array(name.utf8), role: role, origin: .file, password: $0) }
            .mapError { Problem("the hash of \(quoted(name)) \($0.words)") }
    }

    // MARK: - Hashes

    /// A hash as the PHC string format has it: `$scrypt$ln=15,r=8,p=3$SALT$HASH`.
    static func text(_ password: PasswordHash) -> String {
        "$scrypt$ln=\(password.log2N),r=\(password.r),p=\(password.p)"
            + "$\(base64(password.salt))$\(base64(password.hash))"
    }

    private static func password(_ text: Substring) -> Result<PasswordHash, Problem> {
        let parts = text.split(separator: "$", omittingEmptySubsequences: false)
        guard parts.count == 5, parts[0].isEmpty, parts[1] == "scrypt", let salt = bytes(base64: parts[3]),
            let hash = bytes(base64: parts[4])
        else { return .failure(Problem("is not like $scrypt$ln=15,r=8,p=3$SALT$HASH, with base64 without =")) }
        let numbers = parts[2].split(separator: ",", omittingEmptySubsequences: false)
        guard numbers.count == 3, let log2N = number(numbers[0], "ln="), let r = number(numbers[1], "r="),
            let p = number(numbers[2], "p=")
        else { return .failure(Problem("has other parameters than ln=NUMBER,r=NUMBER,p=NUMBER")) }
        guard salt.count >= minByteCounts.salt, hash.count >= minByteCounts.hash else {
            return .failure(
                Problem("is too short: a salt has \(minByteCounts.salt) bytes or more, a hash \(minByteCounts.hash)"))
        }
        let password = PasswordHash(log2N: log2N, r: r, p: p, salt: salt, hash: hash)
        guard password.isWithinBounds else {
            return .failure(
                Problem(
                    "wants more than a tracker gives a log-in: 256 MiB (128 r 2^ln), p \(PasswordHash.maxParallelism), "
                        + "\(PasswordHash.maxByteCount) bytes of salt and of hash; no number is 0"))
        }
        return .success(password)
    }

    private static func number(_ text: Substring, _ name: String) -> UInt8? {
        guard text.hasPrefix(name) else { return nil }
        let digits = text.dropFirst(name.count)
        guard digits.first != "0", digits.utf8.allSatisfy({ (48...57).contains($0) }) else { return nil }
        return UInt8(digits)
    }

    // MARK: - Base64 (RFC 4648, section 4), without padding

    private static let digits = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)

    private static func base64(_ bytes: [UInt8]) -> String {
        var text: [UInt8] = []
        var (pending, bitCount) = (UInt32(0), 0)
        for byte in bytes {
            (pending, bitCount) = (pending << 8 | UInt32(byte), bitCount + 8)
            while bitCount >= 6 {
                bitCount -= 6
                text.append(digits[Int(pending >> UInt32(bitCount)) & 63])
            }
            pending &= 63
        }
        if bitCount > 0 { text.append(digits[Int(pending << UInt32(6 - bitCount)) & 63]) }
        return String(decoding: text, as: UTF8.self)
    }

    /// Nil where it is no base64, or has bits behind its last byte.
    private static func bytes(base64 text: Substring) -> [UInt8]? {
        var bytes: [UInt8] = []
        var (pending, bitCount) = (UInt32(0), 0)
        for digit in text.utf8 {
            guard let value = digits.firstIndex(of: digit) else { return nil }
            (pending, bitCount) = (pending << 6 | UInt32(value), bitCount + 6)
            if bitCount >= 8 {
                bitCount -= 8
                bytes.append(UInt8(truncatingIfNeeded: pending >> UInt32(bitCount)))
                pending &= (1 << UInt32(bitCount)) - 1
            }
        }
        return bitCount < 6 && pending == 0 ? bytes : nil
    }
}

extension ServerConfiguration {
    /// What the operator's files say, of all that is read at the start and again on SIGHUP but for the torrents.
    public struct Rules: Sendable, Equatable {
        /// Who may announce what.
        public var access: AccessRules
        /// Who may log in at the console, beside those whom it knows itself.
        public var accounts: [Account]

        /// Takes the fields as they are.
        public init(access: AccessRules = AccessRules(), accounts: [Account] = []) {
            (self.access, self.accounts) = (access, accounts)
        }
    }

    /// Reads the files.
    ///
    /// - Throws: what is wrong with one of them; the rules in force are then best kept.
    public func rules() throws(TextFileError) -> Rules {
        Rules(access: try accessRules(), accounts: try accountsFile.map(AccountFile.read) ?? [])
    }
}
