// Why bytes are no metainfo file.

import Primitives

/// Why bytes are no metainfo file, said so that a person can mend it.
public struct MetainfoError: Error, Sendable, Hashable {
    /// What is wrong with the value, or with its absence.
    public enum Reason: Sendable, Hashable {
        case notBencoded(BencodeError)
        /// A key that BEP 3 or BEP 52 demands is absent.
        case missing
        /// The value is of another kind.
        case wrongKind(expected: BencodeNode.Kind)
        /// A number, or the length of a string, beyond its bounds.
        case outOfRange(lowest: Int, highest: Int)
        /// Not a multiple of the length of a hash, in bytes.
        case ragged(hashByteCount: Int)
        /// BEP 52: "It must be a power of two and at least 16KiB".
        case notPowerOfTwo
        /// A name that could lead out of the download directory, or that no file can have.
        case badName(PathComponent.Refusal)
        /// `length` and `files` exclude each other (BEP 3).
        case bothLengthAndFiles
        /// No file, or none with a byte in it.
        case nothingToShare
        case tooMany(limit: Int)
        /// So many hashes for so many pieces.
        case pieceCount(expected: Int, found: Int)
        /// Two files with one path, or a file where another has its directory.
        case samePath
        /// A `meta version` that nobody knows yet (BEP 52).
        case unknownVersion(Int64)
        /// A file with a directory's entries, or the tree's root as a file (BEP 52).
        case fileIsDirectory
        /// The two halves of a hybrid torrent describe different files (BEP 52, "Upgrade Path").
        case hybridMismatch
        /// A piece layer that belongs to no file longer than a piece (BEP 52).
        case layerWithoutFile
        /// A piece layer whose hashes do not lead to the root of its files (BEP 52).
        case wrongLayer
        /// A padding file in a v2 tree, where each file begins a piece anyway.
        case paddingInTree
        /// Not usable as a URL: empty, too long, or with spaces or control characters in it.
        case badURL
    }

    /// What is wrong with `key`.
    public var reason: Reason
    /// The key in question, as the BEPs write it.
    public var key: String
    /// Which file, from 0 in the order of the torrent; nil where no single file is in question.
    public var fileIndex: Int?

    /// Takes what is wrong, and where.
    public init(_ reason: Reason, key: String, fileIndex: Int? = nil) {
        self.reason = reason
        self.key = key
        self.fileIndex = fileIndex
    }
}

extension MetainfoError: CustomStringConvertible {
    /// A sentence for people, which repeats nothing of the input but numbers.
    public var description: String {
        if case .notBencoded(let error) = reason { return "this is not a .torrent file: \(error)" }
        let place = fileIndex.map { "file number \($0 + 1): " } ?? ""
        return "not a valid .torrent file: \(place)\(cause)"
    }

    private var cause: String {
        switch reason {
        case .notBencoded(let error): "\(error)"
        case .missing: "“\(key)” is missing"
        case .wrongKind(let kind): "“\(key)” should be \(MetainfoError.noun(kind))"
        case .outOfRange(let lowest, let highest): "“\(key)” is not between \(lowest) and \(highest)"
        case .ragged(let count): "“\(key)” is not a whole number of hashes of \(count) bytes"
        case .notPowerOfTwo: "“\(key)” should be a power of two and at least 16384"
        case .badName(let refusal): "“\(key)” has \(refusal)"
        case .bothLengthAndFiles: "it has both “length” and “files”, which exclude each other"
        case .nothingToShare: "it has no file with a byte in it"
        case .tooMany(let limit): "“\(key)” has more than \(limit) entries"
        case .pieceCount(let expected, let found): "“\(key)” has \(found) hashes where the files need \(expected)"
        case .samePath: "two files have the same path, or one stands where another has its directory"
        case .unknownVersion(let version): "“meta version” is \(version); only version 2 is known: is it newer than us?"
        case .fileIsDirectory: "“\(key)” has an entry that is both a file and a directory"
        case .hybridMismatch: "it is a hybrid, and its v1 and v2 halves describe different files"
        case .layerWithoutFile: "“\(key)” has a layer that belongs to no file longer than a piece"
        case .wrongLayer: "“\(key)” has hashes that do not lead to the “pieces root” of the file"
        case .paddingInTree: "it is padding, which a v2 torrent has not: each file begins a piece there"
        case .badURL: "“\(key)” has a URL that is empty, too long, or has spaces in it"
        }
    }

    private static func noun(_ kind: BencodeNode.Kind) -> String {
        switch kind {
        case .integer: "an integer"
        case .bytes: "a string"
        case .list: "a list"
        case .dictionary: "a dictionary"
        }
    }
}
