// Where the files of a torrent lie.

import Glibc
import PeerLogic
import Primitives
import Wire

/// Where the files of a torrent lie: below one directory, or wherever the things are that it was made of.
struct FilePlaces: Sendable {
    /// Where a file lies.
    struct Place: Hashable, Sendable {
        /// Which of `roots` it lies below.
        var root: Int
        /// Names below it.
        var path: [[UInt8]]
    }

    /// Directories that are open.
    private(set) var roots: [OpenFile] = []
    /// Of each file.
    private(set) var places: [Place] = []

    /// All below one directory, as the torrent names them.
    ///
    /// - Throws: `.disk` where there is no such directory.
    init(_ paths: [[[UInt8]]], below directory: String) throws(TransferError) {
        roots = [try Self.open(Array(directory.utf8))]
        places = paths.map { Place(root: 0, path: $0) }
    }

    /// Where they have lain when the torrent was made of them.
    ///
    /// - Parameters:
    ///   - info: has the names.
    ///   - sources: one file or directory that is the whole torrent, or several that are the entries of its directory.
    /// - Throws: `.disk` for a source that is not there, `.usage` where the torrent has other entries.
    init(_ info: TorrentInfo, sources: [String]) throws(TransferError) {
        var names: [[UInt8]] = []
        for source in sources {
            guard let resolved = realpath(source, nil) else {
                let error = DiskError(code: errno, subject: quoted(source))
                throw TransferError(.disk, error.description)
            }
            defer { free(resolved) }
            let path = UnsafeBufferPointer(start: resolved, count: strlen(resolved)).map { UInt8(bitPattern: $0) }
            let slash = path.lastIndex(of: UInt8(ascii: "/")) ?? 0
            roots.append(try Self.open(Array(path[..<max(1, slash)])))
            names.append(Array(path[(slash + 1)...]))
        }
        for file in info.files {
            let path = file.path.map(\.bytes)
            if names.count == 1 {
                places.append(Place(root: 0, path: [names[0]] + (info.isSingleFile ? [] : path)))
            } else if let root = names.firstIndex(where: { $0 == path.first }) {
                places.append(Place(root: root, path: path))
            } else if file.isPadding {
                places.append(Place(root: 0, path: path))
            } else {
                let name = quoted(shownText(path.first ?? []))
                throw TransferError(.usage, "the torrent has a file \(name), which is none of what is shared")
            }
        }
    }

    private static func open(_ directory: [UInt8]) throws(TransferError) -> OpenFile {
        let descriptor = (directory + [0]).withUnsafeBytes {
            Glibc.open($0.assumingMemoryBound(to: CChar.self).baseAddress!, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        }
        guard descriptor >= 0 else {
            let name = quoted(shownText(directory))
            let error = DiskError(code: errno, subject: "the directory \(name) cannot be opened")
            throw TransferError(.disk, "\(error.description); make it, or name another")
        }
        return OpenFile(descriptor)
    }
}
