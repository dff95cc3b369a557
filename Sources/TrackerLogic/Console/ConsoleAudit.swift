// What accounts and torrent files keep for speed, looked at: sums and indexes must be what a search would find.

import Primitives
import Wire

extension Accounts {
    /// Looks whether all that is kept beside accounts and sessions is what it stands for: for simulated worlds and
    /// tests.
    ///
    /// - Returns: the first thing that is not, in words; nil where all is right.
    func audit() -> String? {
        var sum: UInt64 = 0
        var (admins, passkeys) = (0, 0)
        for kept in accounts.records {
            sum &+= fingerprint(kept)
            if kept.account.role == .admin { admins += 1 }
            guard let passkey = kept.account.passkey else { continue }
            passkeys += 1
            guard knowsPasskeys, holder(ofPasskey: passkey) != kept.account.name else { continue }
            return "the passkey of account \(String(decoding: kept.account.name, as: UTF8.self)) is not its own"
        }
        for kept in sessions.records {
            sum &+= fingerprint(kept)
            if kept.session.expires < firstExpiry {
                return "a session expires at \(kept.session.expires), and none before \(firstExpiry)"
            }
        }
        for removal in removed { sum &+= fingerprint(removal) }
        guard sum == digest else { return "the digest of accounts is not that of what is there" }
        if admins != adminCount { return "\(adminCount) accounts count as admins, \(admins) are" }
        if knowsPasskeys, passkeys != passkeyCount { return "\(passkeyCount) passkeys are known, \(passkeys) are held" }
        let ordered = allSessions
        for place in ordered.indices.dropFirst() where ordered[place].createdAt < ordered[place - 1].createdAt {
            return "the session of entry \(ordered[place].createdAt) comes behind a younger one"
        }
        return nil
    }
}

extension TorrentFiles {
    /// Looks whether all that is kept beside files and uploads is what it stands for: for simulated worlds and tests.
    ///
    /// - Returns: the first thing that is not, in words; nil where all is right.
    func audit() -> String? {
        var sum: UInt64 = 0
        var (files, uploads, bytes) = (0, 0, 0)
        for (number, chunk) in chunks.enumerated() {
            var own = 0
            for (place, file) in chunk.files.enumerated() {
                guard self.chunk(of: file.infoHash) == number, self.place(of: file.infoHash, in: number) == place
                else { return "the file of \(file.infoHash) in chunk \(number) is not found there" }
                if file.partsDigest != Upload.digest(file.parts) { return "the parts of \(file.infoHash) are others" }
                sum &+= fingerprint(file)
                own += Int(file.head.byteCount)
            }
            for upload in chunk.uploads {
                guard self.chunk(of: upload.id.infoHash) == number else {
                    return "an upload of \(upload.id.infoHash) is in chunk \(number)"
                }
                if upload.partsDigest != Upload.digest(upload.parts) {
                    return "the parts of an upload of \(upload.id.infoHash) are others"
                }
                sum &+= fingerprint(upload)
                own += Int(upload.byteCount)
            }
            for removal in chunk.removed { sum &+= fingerprint(removal) }
            if own != chunk.byteCount { return "chunk \(number) counts \(chunk.byteCount) bytes, and has \(own)" }
            files += chunk.files.count
            uploads += chunk.uploads.count
            bytes += own
        }
        guard (files, uploads, bytes) == (count, uploadCount, byteCount) else {
            return "\(count) files, \(uploadCount) uploads and \(byteCount) bytes are counted, and \(files), "
                + "\(uploads) and \(bytes) are there"
        }
        return sum == digest ? nil : "the digest of torrent files is not that of what is there"
    }
}
