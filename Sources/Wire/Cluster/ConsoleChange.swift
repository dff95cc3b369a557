// What people ask for at a console, on its way to the master, and what came of it.

import Primitives

/// A change that somebody asks for at a console: the master makes an update of it, where nothing forbids that.
///
/// Each may be asked for again when nobody has said what became of it: what is there already as it was wanted is done.
public enum ConsoleChange: Sendable, Hashable {
    /// Make an account, or change it.
    case putAccount(Account, expected: Expectation)
    /// Take an account out, with its sessions; the last admin stays.
    case removeAccount(name: [UInt8], expected: Expectation)
    /// Log somebody in. The expectation is about the account, whose password was found right as of that entry.
    case putSession(Session, expected: Expectation)
    /// Log out.
    case removeSession(Bytes32)
    /// The next part of a torrent file.
    case uploadPart(UploadPart)
    /// All parts have been sent: the file is to be seen from here on.
    case finishUpload(TorrentFileHead, expected: Expectation)
    /// Nobody sends the rest of it.
    case dropUpload(UploadID)
    /// Take a torrent file out.
    case removeTorrentFile(InfoHash, expected: Expectation)
}

/// What came of a change that somebody asked for.
public enum ChangeOutcome: Sendable, Hashable {
    /// It is decided, and applied: the index of the entry that last changed the thing (its ETag).
    case done(at: UInt64)
    /// The thing is not as expected: the index of the entry that last changed it, 0 where there is none.
    case outdated(at: UInt64)
    /// The upload wants this part next; 0 where nothing is known of it.
    case partWanted(UInt32)
    /// Something forbids it, in a sentence.
    case refused(String)
    /// It was not carried out here, or nobody knows, in a sentence: to be asked for anew, of the master.
    case dropped(String)
}

// MARK: - Bytes

extension ConsoleChange {
    func encode(into bytes: inout [UInt8]) {
        switch self {
        case .putAccount(let account, let expected):
            bytes.append(1)
            account.encode(into: &bytes)
            expected.encode(into: &bytes)
        case .removeAccount(let name, let expected):
            bytes.append(2)
            bytes.append(counted: name)
            expected.encode(into: &bytes)
        case .putSession(let session, let expected):
            bytes.append(3)
            session.encode(into: &bytes)
            expected.encode(into: &bytes)
        case .removeSession(let key):
            bytes.append(4)
            bytes.append(key)
        case .uploadPart(let part):
            bytes.append(5)
            part.encode(into: &bytes)
        case .finishUpload(let head, let expected):
            bytes.append(6)
            head.encode(into: &bytes)
            expected.encode(into: &bytes)
        case .dropUpload(let upload):
            bytes.append(7)
            upload.encode(into: &bytes)
        case .removeTorrentFile(let infoHash, let expected):
            bytes.append(8)
            bytes.append(infoHash.bytes)
            expected.encode(into: &bytes)
        }
    }

    init(_ reader: inout ByteReader) throws(OutOfBytes) {
        switch try reader.u8() {
        case 1: self = .putAccount(try Account(&reader), expected: try Expectation(&reader))
        case 2:
            let name = Array(try reader.counted())
            guard name.count <= Account.maxNameByteCount else { throw OutOfBytes() }
            self = .removeAccount(name: name, expected: try Expectation(&reader))
        case 3: self = .putSession(try Session(&reader), expected: try Expectation(&reader))
        case 4: self = .removeSession(try reader.bytes32())
        case 5: self = .uploadPart(try UploadPart(&reader))
        case 6: self = .finishUpload(try TorrentFileHead(&reader), expected: try Expectation(&reader))
        case 7: self = .dropUpload(try UploadID(&reader))
        case 8: self = .removeTorrentFile(InfoHash(try reader.bytes20()), expected: try Expectation(&reader))
        default: throw OutOfBytes()
        }
    }
}

extension ChangeOutcome {
    func encode(into bytes: inout [UInt8]) {
        switch self {
        case .done(let index):
            bytes.append(1)
            bytes.append(bigEndian: index)
        case .outdated(let index):
            bytes.append(2)
            bytes.append(bigEndian: index)
        case .partWanted(let number):
            bytes.append(3)
            bytes.append(bigEndian: number)
        case .refused(let reason):
            bytes.append(4)
            ShortText(reason).encode(into: &bytes)
        case .dropped(let reason):
            bytes.append(5)
            ShortText(reason).encode(into: &bytes)
        }
    }

    init(_ reader: inout MessageReader) throws(ClusterMessageError) {
        switch try reader.u8() {
        case 1: self = .done(at: try reader.index())
        case 2: self = .outdated(at: try reader.index())
        case 3: self = .partWanted(try reader.u32())
        case 4: self = .refused("\(try ShortText(&reader))")
        case 5: self = .dropped("\(try ShortText(&reader))")
        default: throw .damaged
        }
    }
}
