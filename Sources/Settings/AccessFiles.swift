// The files in which operators keep info hashes, users and tokens.

import Primitives
import TrackerLogic
import Wire

extension AccessRules {
    /// Characters of a passkey; shorter ones could be guessed.
    public static let passkeyLengths = 8...64

    /// Reads a list of info hashes: one of 40 hexadecimal digits a line.
    ///
    /// Blank lines are skipped, and `#` at the start of a line or after a blank begins a comment.
    ///
    /// - Parameters:
    ///   - path: of the list.
    ///   - limit: info hashes at most (`Limits.listedInfoHashes`).
    /// - Returns: the info hashes in the order of the file; repeats stay.
    /// - Throws: every line that is wrong, with its number, or why the file cannot be read.
    public static func readInfoHashes(_ path: String, atMost limit: Int) throws(TextFileError) -> [InfoHash] {
        var infoHashes: [InfoHash] = []
        try BoundedFile.forEachLine(path) { content, _ in
            guard infoHashes.count < limit else {
                return "the list has more than \(countText(limit)) info hashes; raise limits.listed-info-hashes"
            }
            if let raw = bytes(hexadecimal: String(decoding: content, as: UTF8.self)), let value = Bytes20(raw) {
                infoHashes.append(InfoHash(value))
                return nil
            }
            let shown = quoted(String(decoding: content, as: UTF8.self))
            if content.count == 64, bytes(hexadecimal: String(decoding: content, as: UTF8.self)) != nil {
                return "\(shown) is a v2 info hash in full; trackers know it by its first 40 digits"
            }
            return "\(shown) is not an info hash; write 40 hexadecimal digits, one info hash a line"
        }
        return infoHashes
    }

    /// Reads the users of a private tracker: `NAME PASSKEY` a line; blank lines and comments as in a list.
    ///
    /// A name may hold blanks; a passkey is 8 to 64 printable ASCII characters without `/ ? & # %`.
    ///
    /// - Parameters:
    ///   - path: of the file.
    ///   - limit: users at most (`Limits.users`).
    /// - Returns: the users in the order of the file.
    /// - Throws: every line that is wrong, also a name or a passkey that was there before, or why the file cannot be
    ///   read.
    public static func readUsers(_ path: String, atMost limit: Int) throws(TextFileError) -> [User] {
        var users: [User] = []
        var lineOfName: [String: Int] = [:]
        var lineOfPasskey: [[UInt8]: Int] = [:]
        try BoundedFile.forEachLine(path) { content, line in
            guard users.count < limit else {
                return "the file has more than \(countText(limit)) users; raise limits.users"
            }
            let blank = content.lastIndex { $0 == 32 || $0 == 9 }
            let passkey = content[(blank.map { $0 + 1 } ?? content.startIndex)...]
            var rest = content.dropLast(passkey.count)
            while let last = rest.last, last == 32 || last == 9 { rest = rest.dropLast() }
            guard !rest.isEmpty, let name = String(validating: rest, as: UTF8.self) else {
                return "the line is not a name, a blank and a passkey"
            }
            guard rest.count <= Limits.maxNameByteCount else {
                return "the name has \(rest.count) bytes; write at most \(Limits.maxNameByteCount)"
            }
            // Not the passkey itself: messages end up in logs.
            guard passkeyLengths.contains(passkey.count), passkey.allSatisfy(Account.isPasskeyByte) else {
                return "the passkey of \(quoted(name)) will not do; write 8 to 64 letters, digits or signs "
                    + "other than / ? & # %"
            }
            // In an announce URL the one part that is not this word is the passkey.
            guard !passkey.elementsEqual("announce".utf8) else {
                return "the passkey of \(quoted(name)) is the word announce; choose another"
            }
            if let earlier = lineOfName[name] { return "\(quoted(name)) already has a passkey in line \(earlier)" }
            if let earlier = lineOfPasskey[Array(passkey)] {
                return "\(quoted(name)) has the passkey of line \(earlier); each needs one of his own"
            }
            lineOfName[name] = line
            lineOfPasskey[Array(passkey)] = line
            users.append(User(name: name, passkey: Array(passkey)))
            return nil
        }
        return users
    }
}

extension ServerConfiguration {
    /// Reads the access rules from the files that the mode needs: at the start, and again on SIGHUP.
    ///
    /// - Throws: what is wrong with the list or the users; the rules in force are then best kept.
    public func accessRules() throws(TextFileError) -> AccessRules {
        var rules = AccessRules(mode: accessMode)
        switch accessMode {
        case .open: break
        case .allow, .deny:
            if let accessListFile {
                rules.infoHashes = try AccessRules.readInfoHashes(
                    accessListFile, atMost: node.limits.listedInfoHashes)
            }
        case .private:
            if let usersFile { rules.users = try AccessRules.readUsers(usersFile, atMost: node.limits.users) }
        }
        return rules
    }

    /// Reads the bearer token of the console.
    ///
    /// - Returns: nil where no file is named: a console on loopback needs none.
    /// - Throws: why the file cannot be read, or what a token looks like.
    public func consoleToken() throws(TextFileError) -> String? {
        guard let consoleTokenFile else { return nil }
        return try Self.readToken(consoleTokenFile)
    }

    /// Reads a file that holds a bearer token: one line of 16 to 512 printable ASCII characters without blanks.
    public static func readToken(_ path: String) throws(TextFileError) -> String {
        let text = String(decoding: try BoundedFile.read(path, atMost: 4096), as: UTF8.self)
        let lines = text.split(whereSeparator: \.isNewline)
        guard lines.count == 1, let token = lines.first, (16...512).contains(token.utf8.count),
            token.utf8.allSatisfy({ (33...126).contains($0) })
        else {
            throw TextFileError(
                path: path,
                problems: [
                    .init(
                        "a token file holds one line of 16 to 512 printable characters without blanks; "
                            + "make one with: openssl rand -hex 32")
                ])
        }
        return String(token)
    }
}
