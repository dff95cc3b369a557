// The directory below which all torrents lie: paths that stay in it, and what is there.

import Glibc
import Primitives
import Web
import Wire

/// The directory below which all torrents lie.
///
/// Paths come from whoever uses the page. They are opened part by part and never through a symbolic link, so that none
/// leads out of the directory; names that begin with a dot are not there for anybody.
struct PeerDirectory: Sendable {
    /// Parts of a path.
    static let maxDepth = 32
    /// Bytes of a path.
    static let maxPathByteCount = 4_000
    /// Bytes of a part of a path: what Linux stores.
    static let maxNameByteCount = 255
    /// Names that are looked at in one folder.
    static let maxNameCount = 100_000

    /// Absolute, without links.
    let path: String
    /// The hidden folder of what is not the user's: what is verified of transfers, and .torrent files that were made.
    let hiddenFolder: String

    /// A descriptor that is closed when nobody uses it any more.
    private final class Descriptor {
        let number: CInt

        init(_ number: CInt) { self.number = number }

        deinit { close(number) }
    }

    /// Takes a directory, or makes it where only its last part is missing.
    ///
    /// - Throws: `PeerHostError`, with the system's reason.
    init(_ path: String) throws(PeerHostError) {
        if mkdir(path, 0o755) != 0, errno != EEXIST {
            throw PeerHostError("the directory \(path) cannot be made: \(Self.reason(errno)); name another by --path")
        }
        guard let resolved = realpath(path, nil) else {
            throw PeerHostError("the directory \(path) cannot be opened: \(Self.reason(errno)); name another by --path")
        }
        defer { free(resolved) }
        self.path = String(cString: resolved)
        var status = stat()
        guard stat(self.path, &status) == 0, status.st_mode & S_IFMT == S_IFDIR else {
            throw PeerHostError("\(path) is no directory; name another by --path")
        }
        hiddenFolder = "\(self.path)/.swarmkeeper-peer"
        guard mkdir(hiddenFolder, 0o750) == 0 || errno == EEXIST else {
            throw PeerHostError("\(hiddenFolder) cannot be made: \(Self.reason(errno)); name another by --path")
        }
    }

    private static func reason(_ code: CInt) -> String { String(cString: strerror(code)) }

    // MARK: - Paths

    /// The parts of a path below the directory.
    ///
    /// - Returns: none for an empty path, which is the directory itself.
    /// - Throws: `PeerRefusal`, for a path that could lead anywhere else.
    static func parts(_ path: String) throws(PeerRefusal) -> [String] {
        guard !path.isEmpty else { return [] }
        let parts = path.split(separator: "/", omittingEmptySubsequences: false).map(String.init)
        guard path.utf8.count <= maxPathByteCount, parts.count <= maxDepth else {
            throw PeerRefusal(.invalid, "a path has \(maxDepth) parts and \(maxPathByteCount) bytes at most")
        }
        for part in parts {
            let isPlain = part.utf8.allSatisfy { $0 >= 32 && $0 != 127 }
            guard !part.isEmpty, part.utf8.first != UInt8(ascii: "."), isPlain, part.utf8.count <= maxNameByteCount
            else {
                throw PeerRefusal(
                    .invalid,
                    "\(quoted(path)) is no path below the peer's directory: write names with slashes between them, "
                        + "none of which begins with a dot")
            }
        }
        return parts
    }

    /// The same path, absolute.
    func absolute(_ parts: [String]) -> String { ([path] + parts).joined(separator: "/") }

    /// Opens a folder part by part.
    private func open(_ parts: [String], makes: Bool) throws(PeerRefusal) -> Descriptor {
        let root = Glibc.open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard root >= 0 else {
            throw PeerRefusal(.disk, "the peer's directory cannot be opened: \(Self.reason(errno))")
        }
        var folder = Descriptor(root)
        for (index, part) in parts.enumerated() {
            let flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC
            var found = openat(folder.number, part, flags)
            if found < 0, errno == ENOENT, makes {
                guard mkdirat(folder.number, part, 0o777) == 0 || errno == EEXIST else {
                    throw Self.refusal(errno, parts.prefix(index + 1))
                }
                found = openat(folder.number, part, flags)
            }
            guard found >= 0 else { throw Self.refusal(errno, parts.prefix(index + 1)) }
            folder = Descriptor(found)
        }
        return folder
    }

    private static func refusal(_ code: CInt, _ parts: ArraySlice<String>) -> PeerRefusal {
        let shown = quoted(parts.joined(separator: "/"))
        switch code {
        case ENOENT: return PeerRefusal(.unknown, "there is no folder \(shown) below the peer's directory")
        case ENOTDIR, ELOOP:
            return PeerRefusal(.invalid, "\(shown) is no folder: symbolic links are not followed")
        default: return PeerRefusal(.disk, "\(shown) cannot be used: \(reason(code))")
        }
    }

    /// Makes a folder, and those that it is in.
    ///
    /// - Throws: `PeerRefusal`.
    func make(_ parts: [String]) throws(PeerRefusal) { _ = try open(parts, makes: true) }

    /// Whether a path is a file or a folder; nothing else is either.
    ///
    /// - Throws: `PeerRefusal`, where there is none, or a link.
    func check(_ parts: [String]) throws(PeerRefusal) {
        let folder = try open(Array(parts.dropLast()), makes: false)
        var status = stat()
        guard fstatat(folder.number, parts.last ?? ".", &status, AT_SYMLINK_NOFOLLOW) == 0 else {
            throw Self.refusal(errno, parts[...])
        }
        guard [S_IFREG, S_IFDIR].contains(status.st_mode & S_IFMT) else {
            let shown = quoted(parts.joined(separator: "/"))
            throw PeerRefusal(.invalid, "\(shown) is neither a file nor a folder: symbolic links are not followed")
        }
    }

    /// Forgets what is verified of a transfer.
    func forgetProgress(_ hash: InfoHash) {
        for suffix in ["", "-wal", "-shm", "-journal"] { unlink("\(hiddenFolder)/\(hash).resume\(suffix)") }
    }

    // MARK: - What is there

    /// What is in a folder, folders first, then by name; names that are no UTF-8 are left out, for JSON has none.
    ///
    /// - Throws: `PeerRefusal`.
    func list(_ path: String) throws(PeerRefusal) -> PeerFolder {
        let parts = try Self.parts(path)
        let folder = try open(parts, makes: false)
        let copy = dup(folder.number)
        guard copy >= 0, let stream = fdopendir(copy) else {
            let code = errno
            if copy >= 0 { close(copy) }
            throw Self.refusal(code, parts[...])
        }
        defer { closedir(stream) }
        var entries: [PeerFolder.Entry] = []
        var (count, isCut) = (0, false)
        while let entry = readdir(stream) {
            count += 1
            guard count <= Self.maxNameCount else {
                isCut = true
                break
            }
            let bytes = withUnsafeBytes(of: &entry.pointee.d_name) { Array($0.prefix { $0 != 0 }) }
            guard bytes.first != UInt8(ascii: "."), let name = String(validating: bytes, as: UTF8.self) else {
                continue
            }
            if let found = Self.entry(name, in: folder.number) { entries.append(found) }
        }
        entries.sort { ($0.isFolder ? 0 : 1, $0.name) < ($1.isFolder ? 0 : 1, $1.name) }
        return PeerFolder(
            path: path, entries: Array(entries.prefix(PeerFolder.maxEntries)),
            isCut: isCut || entries.count > PeerFolder.maxEntries)
    }

    private static func entry(_ name: String, in folder: CInt) -> PeerFolder.Entry? {
        var status = stat()
        guard fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) == 0 else { return nil }
        let kind = status.st_mode & S_IFMT
        guard kind == S_IFREG || kind == S_IFDIR else { return nil }
        let modified = Int64(status.st_mtim.tv_sec) * 1_000 + Int64(status.st_mtim.tv_nsec) / 1_000_000
        return PeerFolder.Entry(
            name: name, isFolder: kind == S_IFDIR, byteCount: kind == S_IFREG ? Int(status.st_size) : 0,
            modifiedAt: modified)
    }
}
