// Updates about what people keep at the console: accounts, sessions, torrent files.

import Primitives

/// An update about what people keep at the console.
public enum ConsoleUpdate: Sendable, Hashable {
    /// Makes an account, or changes it.
    case putAccount(Account)
    /// Takes an account out, with its sessions.
    case removeAccount(name: [UInt8])
    /// On the other side of a healed partition an account was made or changed; `at` is cluster time in seconds.
    case mergeAccount(Account, at: UInt32)
    /// There, an account was removed.
    case mergeRemovedAccount(name: [UInt8], at: UInt32)
    /// Makes a session of an account that is there.
    case putSession(Session)
    /// Ends a session.
    case removeSession(Bytes32)
    /// Ends all sessions that expire at this cluster time (seconds since 1970), or before.
    case expireSessions(through: UInt32)
    /// The next part of a torrent file; the first one begins an upload.
    case uploadPart(UploadPart)
    /// All parts are there: the file is to be seen from here on.
    case finishUpload(TorrentFileHead)
    /// The same, of a file that came whole to the other side of a healed partition; `at` is cluster time in seconds.
    case mergeFile(TorrentFileHead, at: UInt32)
    /// The parts of an upload go.
    case dropUpload(UploadID)
    /// In one chunk of torrent files, counted from 0, the parts go of those uploads that have had none since this
    /// cluster time (seconds since 1970).
    case forgetUploads(chunk: UInt32, idleSince: UInt32)
    /// Takes a torrent file out.
    case removeTorrentFile(InfoHash)
    /// On the other side of a healed partition a torrent file was taken out; `at` is cluster time in seconds.
    case mergeRemovedFile(InfoHash, at: UInt32)
}

extension ConsoleUpdate {
    private enum Kind: UInt8 {
        case putAccount = 1
        case removeAccount = 2
        case putSession = 3
        case removeSession = 4
        case expireSessions = 5
        case uploadPart = 6
        case finishUpload = 7
        case dropUpload = 8
        case forgetUploads = 9
        case removeTorrentFile = 10
        case mergeAccount = 11
        case mergeRemovedAccount = 12
        case mergeFile = 13
        case mergeRemovedFile = 14
    }

    func encode(into bytes: inout [UInt8]) {
        func begin(_ kind: Kind, _ bytes: inout [UInt8]) { bytes.append(kind.rawValue) }
        switch self {
        case .putAccount(let account):
            begin(.putAccount, &bytes)
            account.encode(into: &bytes)
        case .removeAccount(let name):
            begin(.removeAccount, &bytes)
            bytes.append(counted: name)
        case .putSession(let session):
            begin(.putSession, &bytes)
            session.encode(into: &bytes)
        case .removeSession(let key):
            begin(.removeSession, &bytes)
            bytes.append(key)
        case .expireSessions(let time):
            begin(.expireSessions, &bytes)
            bytes.append(bigEndian: time)
        case .uploadPart(let part):
            begin(.uploadPart, &bytes)
            part.encode(into: &bytes)
        case .finishUpload(let head):
            begin(.finishUpload, &bytes)
            head.encode(into: &bytes)
        case .dropUpload(let upload):
            begin(.dropUpload, &bytes)
            upload.encode(into: &bytes)
        case .forgetUploads(let chunk, let time):
            begin(.forgetUploads, &bytes)
            bytes.append(bigEndian: chunk)
            bytes.append(bigEndian: time)
        case .removeTorrentFile(let infoHash):
            begin(.removeTorrentFile, &bytes)
            bytes.append(infoHash.bytes)
        case .mergeAccount(let account, let time):
            begin(.mergeAccount, &bytes)
            account.encode(into: &bytes)
            bytes.append(bigEndian: time)
        case .mergeRemovedAccount(let name, let time):
            begin(.mergeRemovedAccount, &bytes)
            bytes.append(counted: name)
            bytes.append(bigEndian: time)
        case .mergeFile(let head, let time):
            begin(.mergeFile, &bytes)
            head.encode(into: &bytes)
            bytes.append(bigEndian: time)
        case .mergeRemovedFile(let infoHash, let time):
            begin(.mergeRemovedFile, &bytes)
            bytes.append(infoHash.bytes)
            bytes.append(bigEndian: time)
        }
    }

    init(_ reader: inout ByteReader) throws(OutOfBytes) {
        guard let kind = Kind(rawValue: try reader.u8()) else { throw OutOfBytes() }
        self =
            switch kind {
            case .putAccount: .putAccount(try Account(&reader))
            case .removeAccount: .removeAccount(name: Array(try reader.counted()))
            case .putSession: .putSession(try Session(&reader))
            case .removeSession: .removeSession(try reader.bytes32())
            case .expireSessions: .expireSessions(through: try reader.u32())
            case .uploadPart: .uploadPart(try UploadPart(&reader))
            case .finishUpload: .finishUpload(try TorrentFileHead(&reader))
            case .dropUpload: .dropUpload(try UploadID(&reader))
            case .forgetUploads: .forgetUploads(chunk: try reader.u32(), idleSince: try reader.u32())
            case .removeTorrentFile: .removeTorrentFile(InfoHash(try reader.bytes20()))
            case .mergeAccount: .mergeAccount(try Account(&reader), at: try reader.u32())
            case .mergeRemovedAccount: .mergeRemovedAccount(name: Array(try reader.counted()), at: try reader.u32())
            case .mergeFile: .mergeFile(try TorrentFileHead(&reader), at: try reader.u32())
            case .mergeRemovedFile: .mergeRemovedFile(InfoHash(try reader.bytes20()), at: try reader.u32())
            }
    }
}
