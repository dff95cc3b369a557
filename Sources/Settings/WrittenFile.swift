// Files that are written where people say, with errors that name the file.

#if canImport(Glibc)
    import Glibc
#else
    import Darwin
#endif

/// `write(2)`, which `WrittenFile.write` would hide.
private func writeBytes(_ descriptor: Int32, _ buffer: UnsafeRawPointer?, _ count: Int) -> Int {
    write(descriptor, buffer, count)
}

/// Writes files where people say.
public enum WrittenFile {
    /// Makes a file of these bytes, in place of what was there; a pipe or a device takes them as they come.
    ///
    /// - Parameters:
    ///   - bytes: all that is to be in it.
    ///   - path: as a person gave it.
    /// - Throws: a sentence with the cause and the way out; a part of the bytes may be there.
    public static func write(_ bytes: [UInt8], to path: String) throws(TextFileError) {
        let descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o666)
        guard descriptor >= 0 else { throw failure(path, errno) }
        let cause = writeAll(bytes, to: descriptor)
        let isClosed = close(descriptor) == 0
        if let cause { throw failure(path, cause) }
        // Over a network, that the disk is full may be told last.
        guard isClosed || errno == EINTR else { throw failure(path, errno) }
    }

    /// - Returns: why not all could be written; nil where all was.
    private static func writeAll(_ bytes: [UInt8], to descriptor: Int32) -> Int32? {
        bytes.withUnsafeBytes { buffer in
            var rest = buffer[...]
            while !rest.isEmpty {
                let count = writeBytes(descriptor, UnsafeRawBufferPointer(rebasing: rest).baseAddress, rest.count)
                if count < 0, errno == EINTR { continue }
                guard count > 0 else { return count < 0 ? errno : EIO }
                rest = rest.dropFirst(count)
            }
            return nil
        }
    }

    /// What keeps a file from being written, and what to do.
    static func failure(_ path: String, _ code: Int32) -> TextFileError {
        let message =
            switch code {
            case EISDIR: "this is a directory; name a file in it"
            case ENOENT: "its directory is not there; make it, or check the path"
            case ENOTDIR: "a file is in the way, where a directory is named; check the path"
            case EACCES, EPERM: "this user may not write it; check its permissions, or name another file"
            case EROFS: "nothing can be written there; name a file elsewhere"
            case ENOSPC, EDQUOT: "the disk is full; make room, or name a file elsewhere"
            default: "it cannot be written: \(String(cString: strerror(code)))"
            }
        return TextFileError(path: path, problems: [.init(message)])
    }
}
