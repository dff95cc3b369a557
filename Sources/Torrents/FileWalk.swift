// The files below a path.

import Glibc
import Primitives
import Wire

/// The files below a path, in the order of their names as bytes.
struct FileWalk {
    struct File {
        /// Below the root; the root's own name where it is a single file.
        var components: [PathComponent]
        /// With the terminating zero, as the system takes it.
        var path: [CChar]
        var byteCount: Int
        var isExecutable: Bool

        var shownPath: String { FileWalk.shown(path) }

        func unreadable(_ code: CInt) -> TorrentMakerError { FileWalk.unreadable(path, code) }
    }

    /// The last component of the path.
    private(set) var name: [UInt8]
    private(set) var isSingleFile = false
    private(set) var files: [File] = []
    /// Links and special files that were left out.
    private(set) var skipped: [String] = []

    /// Finds all files below a path.
    ///
    /// - Parameter path: a file or a directory; itself it may be a symbolic link.
    /// - Throws: `TorrentMakerError`, which names what cannot be read.
    init(_ path: String) throws(TorrentMakerError) {
        // "." and "x/.." have no name of their own.
        guard let resolved = realpath(path, nil) else { throw Self.unreadable(Array(path.utf8CString), errno) }
        defer { free(resolved) }
        let root = Array(UnsafeBufferPointer(start: resolved, count: strlen(resolved) + 1))
        name = Self.bytes(root).split(separator: UInt8(ascii: "/")).last.map { Array($0) } ?? []
        let status = try Self.status(root)
        switch status.st_mode & S_IFMT {
        case S_IFREG:
            isSingleFile = true
            files = [File(components: [], path: root, byteCount: Int(status.st_size), isExecutable: false)]
        case S_IFDIR:
            try walk(root, [])
        default:
            throw .invalid("\(path) is neither a file nor a directory")
        }
    }

    /// Finds all files below several paths, as entries of one directory that has no name yet.
    ///
    /// - Parameter paths: at least one; alone it is walked as `init(_:)` does.
    /// - Throws: `TorrentMakerError`, which names what cannot be read, or which two would have one name.
    init(_ paths: [String]) throws(TorrentMakerError) {
        self = try paths.count == 1 ? FileWalk(paths[0]) : FileWalk(sideBySide: paths)
    }

    private init(sideBySide paths: [String]) throws(TorrentMakerError) {
        var entries: [(name: PathComponent, path: String, walk: FileWalk)] = []
        for path in paths {
            let walk = try FileWalk(path)
            do {
                entries.append((try PathComponent(walk.name), path, walk))
            } catch {
                throw .invalid("\(path) has \(error)")
            }
        }
        entries.sort { $0.name < $1.name }
        for (one, other) in zip(entries, entries.dropFirst()) where one.name == other.name {
            throw .invalid("\(one.path) and \(other.path) would both be \(one.name) in the torrent; rename one of them")
        }
        name = []
        for entry in entries {
            for var file in entry.walk.files {
                file.components.insert(entry.name, at: 0)
                guard file.components.count <= TorrentInfo.maxPathDepth else {
                    throw .invalid("\(entry.path) is more than \(TorrentInfo.maxPathDepth - 1) directories deep")
                }
                files.append(file)
            }
            skipped += entry.walk.skipped
        }
        guard files.count <= TorrentInfo.maxFileCount else {
            throw .invalid("there are more than \(countText(TorrentInfo.maxFileCount)) files")
        }
    }

    private mutating func walk(_ directory: [CChar], _ components: [PathComponent]) throws(TorrentMakerError) {
        guard components.count < TorrentInfo.maxPathDepth else {
            throw .invalid("\(Self.shown(directory)) is more than \(TorrentInfo.maxPathDepth) directories deep")
        }
        for name in try Self.names(in: directory) {
            let path = directory.dropLast() + [CChar(UInt8(ascii: "/"))] + name.map { CChar(bitPattern: $0) } + [0]
            let component: PathComponent
            do {
                component = try PathComponent(name)
            } catch {
                throw .invalid("\(Self.shown(Array(path))) has \(error)")
            }
            let status = try Self.status(Array(path))
            switch status.st_mode & S_IFMT {
            case S_IFREG:
                guard files.count < TorrentInfo.maxFileCount else {
                    throw .invalid("there are more than \(countText(TorrentInfo.maxFileCount)) files")
                }
                files.append(
                    File(
                        components: components + [component], path: Array(path), byteCount: Int(status.st_size),
                        isExecutable: status.st_mode & S_IXUSR != 0))
            case S_IFDIR: try walk(Array(path), components + [component])
            default: skipped.append(Self.shown(Array(path)))
            }
        }
    }

    /// The names in a directory but `.` and `..`, sorted.
    private static func names(in directory: [CChar]) throws(TorrentMakerError) -> [[UInt8]] {
        guard let stream = opendir(directory) else { throw unreadable(directory, errno) }
        defer { closedir(stream) }
        var names: [[UInt8]] = []
        while true {
            errno = 0
            guard let entry = readdir(stream) else {
                guard errno == 0 else { throw unreadable(directory, errno) }
                break
            }
            let name = withUnsafeBytes(of: &entry.pointee.d_name) { Array($0.prefix { $0 != 0 }) }
            if name != [UInt8(ascii: ".")], name != Array("..".utf8) { names.append(name) }
            guard names.count <= TorrentInfo.maxFileCount else {
                throw .invalid("\(shown(directory)) holds more than \(countText(TorrentInfo.maxFileCount)) files")
            }
        }
        return names.sorted { $0.lexicographicallyPrecedes($1) }
    }

    /// Of the thing itself, not of what a link points to.
    private static func status(_ path: [CChar]) throws(TorrentMakerError) -> stat {
        var status = stat()
        guard lstat(path, &status) == 0 else { throw unreadable(path, errno) }
        return status
    }

    private static func bytes(_ path: [CChar]) -> [UInt8] { path.dropLast().map { UInt8(bitPattern: $0) } }

    fileprivate static func shown(_ path: [CChar]) -> String { shownText(bytes(path)) }

    fileprivate static func unreadable(_ path: [CChar], _ code: CInt) -> TorrentMakerError {
        let reason =
            switch code {
            case ENOENT: "there is no such file or directory"
            case EACCES, EPERM: "this user may not read it"
            default: String(cString: strerror(code))
            }
        return .unreadable(shown(path), reason: reason)
    }
}
