// The files of a v1 torrent.

import Primitives

/// The files of a v1 torrent: `length`, or `files` (BEP 3), with the attributes of BEP 47.
enum FileList {
    static func files(
        _ info: MetainfoField, name: PathComponent, _ strictness: BencodeStrictness
    ) throws(MetainfoError) -> [TorrentFile] {
        guard let list = info.field("files") else {
            let length = try info.require("length").integer(in: 0...TorrentInfo.maxTotalLength)
            return [
                TorrentFile(
                    path: [name], length: length, offset: 0, attributes: attributes(info).subtracting(.padding),
                    piecesRoot: nil)
            ]
        }
        guard info.field("length") == nil else { throw list.error(.bothLengthAndFiles) }
        var files: [TorrentFile] = []
        var offset = 0
        for node in try list.elements() {
            guard files.count < TorrentInfo.maxFileCount else {
                throw list.error(.tooMany(limit: TorrentInfo.maxFileCount))
            }
            let entry = MetainfoField(node: node, key: "files", fileIndex: files.count)
            let file = try self.file(entry, offset: offset, strictness)
            offset += file.length
            files.append(file)
        }
        return files
    }

    private static func file(
        _ entry: MetainfoField, offset: Int, _ strictness: BencodeStrictness
    ) throws(MetainfoError) -> TorrentFile {
        _ = try entry.entries()
        var attributes = self.attributes(entry)
        var length = 0
        // BEP 47: "The length of a symlink is always zero … can be omitted".
        if !attributes.contains(.symbolicLink) {
            length = try entry.require("length").integer(in: 0...TorrentInfo.maxTotalLength - offset)
        }
        let path = try self.path(entry, length: length, isPadding: attributes.contains(.padding), strictness)
        if path.last?.bytes.starts(with: "_____padding_file_".utf8) == true { attributes.insert(.padding) }
        return TorrentFile(path: path, length: length, offset: offset, attributes: attributes, piecesRoot: nil)
    }

    private static func path(
        _ entry: MetainfoField, length: Int, isPadding: Bool, _ strictness: BencodeStrictness
    ) throws(MetainfoError) -> [PathComponent] {
        guard let field = entry.textField("path") else {
            // BEP 47: "clients … should not require it to be present on padding files".
            guard isPadding else { throw MetainfoError(.missing, key: "path", fileIndex: entry.fileIndex) }
            return [try entry.component(Array(".pad".utf8)[...]), try entry.component(Array("\(length)".utf8)[...])]
        }
        var path: [PathComponent] = []
        for node in try field.elements() {
            guard path.count < TorrentInfo.maxPathDepth else {
                throw field.error(.tooMany(limit: TorrentInfo.maxPathDepth))
            }
            // Some programs write them; clients leave them out, so that the path leads nowhere else.
            if case .lenient = strictness, let name = node.bytes, name.isEmpty { continue }
            path.append(try MetainfoField(node: node, key: field.key, fileIndex: field.fileIndex).component())
        }
        guard !path.isEmpty else { throw field.error(.badName(.empty)) }
        return path
    }

    /// BEP 47: "Characters appear in no particular order and unknown characters should be ignored".
    static func attributes(_ entry: MetainfoField) -> TorrentFile.Attributes {
        var result: TorrentFile.Attributes = []
        for character in entry.field("attr")?.node.bytes ?? [] {
            switch character {
            case UInt8(ascii: "p"): result.insert(.padding)
            case UInt8(ascii: "x"): result.insert(.executable)
            case UInt8(ascii: "h"): result.insert(.hidden)
            case UInt8(ascii: "l"): result.insert(.symbolicLink)
            default: break
            }
        }
        return result
    }

    /// Whether no path is there twice, and none where another has a directory; padding is never written, and shares
    /// names by custom.
    ///
    /// Sorted component by component, a path stands right before those that it begins.
    ///
    /// - Throws: `samePath` where it is to be read strictly.
    static func areDistinct(
        _ files: [TorrentFile], _ strictness: BencodeStrictness
    ) throws(MetainfoError) -> Bool {
        let sorted = files.indices.filter { !files[$0].isPadding }.sorted {
            files[$0].path.lexicographicallyPrecedes(files[$1].path)
        }
        for (index, next) in zip(sorted, sorted.dropFirst()) where files[next].path.starts(with: files[index].path) {
            if case .lenient = strictness { return false }
            throw MetainfoError(.samePath, key: "path", fileIndex: max(index, next))
        }
        return true
    }
}
