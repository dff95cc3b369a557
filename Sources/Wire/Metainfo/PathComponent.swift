// Names of files and directories that strangers chose, made safe before anything can use them.

import Primitives

/// One name of a path, made safe: never empty, never `.` or `..`, without `/` and NUL.
///
/// So joining components cannot lead out of the directory that they are joined to. The bytes are kept as they are, also
/// where they are not UTF-8 (BEP 52, "file tree": "Keys may contain invalid UTF-8 sequences"): a Linux file name is
/// bytes, and repairing two names could make them one.
public struct PathComponent: Sendable, Hashable, Comparable {
    /// 255 characters of four bytes, the longest name that any common file system stores.
    ///
    /// Linux stores only 255 bytes, but a torrent made elsewhere is none the less valid.
    public static let maxByteCount = 1_020

    /// As the torrent has them; 1…`maxByteCount`, not always UTF-8.
    public let bytes: [UInt8]

    /// Why a name is refused.
    public enum Refusal: Error, Sendable, Hashable {
        case empty
        /// `.` or `..`.
        case dots
        case slash
        case nul
        /// Over `maxByteCount`.
        case tooLong
    }

    /// Takes a name as it is, or refuses it.
    ///
    /// - Parameter bytes: one name, without separators.
    /// - Throws: `Refusal` for a name that could lead elsewhere, or that no file can have.
    public init(_ bytes: some Collection<UInt8>) throws(Refusal) {
        guard !bytes.isEmpty else { throw .empty }
        guard bytes.count <= PathComponent.maxByteCount else { throw .tooLong }
        for byte in bytes {
            if byte == UInt8(ascii: "/") { throw .slash }
            if byte == 0 { throw .nul }
        }
        guard bytes.count > 2 || bytes.contains(where: { $0 != UInt8(ascii: ".") }) else { throw .dots }
        self.bytes = Array(bytes)
    }

    /// Takes the UTF-8 bytes of a name, or refuses them.
    ///
    /// - Parameter text: one name, without separators.
    /// - Throws: `Refusal` for a name that could lead elsewhere, or that no file can have.
    public init(_ text: String) throws(Refusal) { try self.init(text.utf8) }

    /// Sorted as raw bytes, as the keys of a v2 file tree are.
    public static func < (left: PathComponent, right: PathComponent) -> Bool {
        left.bytes.lexicographicallyPrecedes(right.bytes)
    }
}

extension PathComponent: CustomStringConvertible {
    /// The name for people's eyes; not for opening files, since what is harmful or no UTF-8 shows as U+FFFD.
    public var description: String { displayText(bytes) }
}

extension PathComponent.Refusal: CustomStringConvertible {
    /// What is wrong with the name, to be put behind "has".
    public var description: String {
        switch self {
        case .empty: "an empty name"
        case .dots: "the name “.” or “..”, which would lead out of the download directory"
        case .slash: "a name with “/” in it, which would lead elsewhere"
        case .nul: "a name with a NUL byte in it"
        case .tooLong: "a name of more than \(PathComponent.maxByteCount) bytes"
        }
    }
}

/// Text from strangers, made fit for people's eyes.
///
/// Malformed UTF-8, control characters (a terminal would obey them) and characters that turn the writing direction
/// (`gpj.exe` shown as `exe.jpg`) become U+FFFD.
///
/// - Parameters:
///   - bytes: any bytes.
///   - keepsLines: whether line feeds and tabs stay.
/// - Returns: as many Unicode scalars as the bytes are read as.
package func displayText(_ bytes: some Collection<UInt8>, keepsLines: Bool = false) -> String {
    var result = String.UnicodeScalarView()
    for scalar in String(decoding: bytes, as: UTF8.self).unicodeScalars {
        let isHarmful =
            switch scalar.value {
            case 0x09, 0x0A: !keepsLines
            default: scalar.isHarmful
            }
        result.append(isHarmful ? "\u{FFFD}" : scalar)
    }
    return String(result)
}
