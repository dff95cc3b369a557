// A piece from a web seed (BEP 19).

import Client
import Datagrams
import PeerLogic
import Primitives
import Wire

/// A piece from a web seed (BEP 19): a range of each file that it touches, straight into the piece's buffer.
struct WebFetch {
    let url: String
    let info: TorrentInfo
    let store: FileStore
    let userAgent: String

    enum Outcome: Sendable {
        case whole
        case failed(WebSeedProblem, String)
    }

    /// Less than 16 KiB a second is no seed.
    private static let patience = Duration.seconds(30)

    /// Fetches on the calling thread.
    func fetch(_ piece: Int, into buffer: PieceBuffer) -> Outcome {
        let layout = store.layout
        let length = layout.length(ofPiece: piece)
        let deadline = Clock.monotonic() + Self.patience + .seconds(Int64(length / 16_384))
        var done = 0
        while done < length {
            let part = store.part(at: piece * layout.pieceLength + done, upTo: length - done)
            let target = UnsafeMutableRawBufferPointer(rebasing: buffer.bytes[done..<done + part.length])
            if let file = part.file {
                do throws(HTTPRangeGet.Failure) {
                    let place: TrackerURL
                    do { place = try TrackerURL(address(of: file)) } catch { throw .unusable(error.description) }
                    try HTTPRangeGet(url: place, offset: part.offset, deadline: deadline, userAgent: userAgent)
                        .run(into: target)
                } catch {
                    switch error {
                    case .unavailable(let reason): return .failed(.unavailable, reason)
                    case .unusable(let reason): return .failed(.unusable, reason)
                    }
                }
            } else {
                target.initializeMemory(as: UInt8.self, repeating: 0)
            }
            done += part.length
        }
        return .whole
    }

    /// "If the URL ends in a slash, the client must add the name from the torrent" (BEP 19); of several files always.
    private func address(of file: Int) -> String {
        if info.isSingleFile, !url.hasSuffix("/") { return url }
        let path = store.paths[file].map { Self.encoded($0) }
        return "\(url)\(url.hasSuffix("/") ? "" : "/")\(path.joined(separator: "/"))"
    }

    /// RFC 3986, 2.3: all but unreserved characters.
    private static func encoded(_ name: [UInt8]) -> String {
        var result = ""
        for byte in name {
            let scalar = Unicode.Scalar(byte)
            switch scalar {
            case "a"..."z", "A"..."Z", "0"..."9", "-", ".", "_", "~": result.unicodeScalars.append(scalar)
            default: result += "%" + (byte < 16 ? "0" : "") + String(byte, radix: 16, uppercase: true)
            }
        }
        return result
    }
}
