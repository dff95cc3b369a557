// What `get` and `seed` have in common.

import ArgumentParser
import Foundation
import PeerLogic
import Primitives
import Settings
import Transfers
import Wire

/// The flags of `get` and `seed`.
struct TransferFlags: ParsableArguments {
    @Option(help: ArgumentHelp("Where the torrent's file or directory lies, or is to lie.", valueName: "dir"))
    var path: String

    @Option(
        parsing: .singleValue,
        help: ArgumentHelp("A tracker besides those of the torrent; may be repeated.", valueName: "url"))
    var announce: [String] = []

    @Option(
        help: ArgumentHelp(
            "Where peers may call; port 0 lets the system choose. Unless told: all addresses, port 6881.",
            valueName: "host:port"), transform: readAddress)
    var listen: SocketAddress?

    @Option(
        parsing: .singleValue,
        help: ArgumentHelp("A peer to begin with; may be repeated.", valueName: "host:port"), transform: readAddress)
    var peer: [SocketAddress] = []

    @Flag(help: "Ask no tracker.")
    var noTracker = false

    @Option(help: ArgumentHelp("Bytes a second at most, as in 500K or 2M.", valueName: "size"), transform: readRate)
    var maxDown: Int?

    @Option(help: ArgumentHelp("Bytes a second at most, as in 500K or 2M.", valueName: "size"), transform: readRate)
    var maxUp: Int?

    @Option(help: ArgumentHelp("Connections at most.", valueName: "number"))
    var maxPeers = 50

    @Option(help: ArgumentHelp("Peers that are given data at the same time.", valueName: "number"))
    var uploadSlots = 14

    @Flag(help: "Tell the local network, and look for peers there (BEP 14).")
    var lsd = false

    @Flag(help: "Tell peers of no others, and take none from them (BEP 11).")
    var noPex = false

    @Option(
        help: ArgumentHelp("End when nothing has come, or gone, for so long, as in 10m.", valueName: "duration"),
        transform: readSpan)
    var giveUpAfter: Primitives.Duration?

    @Flag(help: "Hash all that lies on the disk, whatever is noted of it.")
    var recheck = false

    @Flag(help: "Give files their room only as they grow.")
    var noPreallocate = false

    @Flag(name: .customLong("json"), help: "Report as JSON, an object a line, for as long as it runs.")
    var isJSON = false

    func validate() throws {
        guard (1...10_000).contains(maxPeers) else { throw ValidationError("--max-peers is 1 to 10,000") }
        guard (0...1_000).contains(uploadSlots) else { throw ValidationError("--upload-slots is 0 to 1,000") }
    }

    /// The engine's part of them.
    func engineOptions() -> EngineOptions {
        var options = EngineOptions()
        options.listenAddresses = listen.map { [$0] } ?? [SocketAddress(ipv4: 0, port: 6881)]
        options.announcesLocally = lsd
        options.maxDownloadRate = maxDown
        options.maxUploadRate = maxUp
        options.userAgent = "Swarmkeeper/\(version)"
        return options
    }

    /// The torrent's part.
    func transferOptions(targetRatio: Double?) -> TransferOptions {
        var options = TransferOptions(directory: path)
        options.peers = peer
        options.asksTrackers = !noTracker
        options.extraTrackers = announce
        options.rechecks = recheck
        options.preallocates = !noPreallocate
        options.settings.maxLinks = maxPeers
        options.settings.uploadSlots = uploadSlots
        options.settings.exchangesPeers = !noPex
        options.settings.targetRatio = targetRatio
        return options
    }
}

/// Reads `192.0.2.1:6881` or `[2001:db8::1]:6881`.
func readAddress(_ text: String) throws -> SocketAddress {
    guard let colon = text.lastIndex(of: ":"), let port = UInt16(text[text.index(after: colon)...]) else {
        throw ValidationError("\"\(text)\" is no address; write for example 192.0.2.1:6881 or [2001:db8::1]:6881")
    }
    var host = text[..<colon]
    if host.hasPrefix("["), host.hasSuffix("]") { host = host.dropFirst().dropLast() }
    guard let address = SocketAddress(host: host, port: port) else {
        throw ValidationError("\"\(host)\" is no IP address; write for example 192.0.2.1:6881 or [2001:db8::1]:6881")
    }
    return address
}

func readRate(_ text: String) throws -> Int {
    let units: [Character: Int] = ["K": 1 << 10, "k": 1 << 10, "M": 1 << 20, "m": 1 << 20, "G": 1 << 30, "g": 1 << 30]
    // As in 2M, 2MB and 2MiB: powers of 1,024 all of them.
    var digits = text[...]
    for ending in ["iB", "B"] where digits.hasSuffix(ending) { digits = digits.dropLast(ending.count) }
    let unit = digits.last.flatMap { units[$0] }
    if unit != nil { digits = digits.dropLast() }
    guard !digits.isEmpty, digits.utf8.allSatisfy({ (48...57).contains($0) }), let number = Int(digits), number > 0
    else { throw ValidationError("\"\(text)\" is no rate; write for example 500K, 2M or 1000000 (bytes a second)") }
    let (rate, overflows) = number.multipliedReportingOverflow(by: unit ?? 1)
    guard !overflows, rate <= 1 << 40 else { throw ValidationError("\"\(text)\" is beyond any network") }
    return max(rate, 1_024)
}

private func readSpan(_ text: String) throws -> Primitives.Duration {
    guard let span = Primitives.Duration(text), span > .zero, span <= .seconds(31_536_000) else {
        throw ValidationError("\"\(text)\" is no duration; write for example 30s, 10m or 2h")
    }
    return span
}

/// Reads what names a torrent: a file, a magnet link or an info hash.
func readSource(_ text: String, trackers: [String]) throws(Failure) -> TorrentSource {
    if text.lowercased().hasPrefix("magnet:") {
        do throws(MagnetLinkError) {
            return .magnet(try MagnetLink(parsing: text))
        } catch {
            throw Failure(.failed, error.description)
        }
    }
    if let infoHash = InfoHash(hexadecimal: text), !FileManager.default.fileExists(atPath: text) {
        return .infoHash(infoHash, trackers: trackers.map { [$0] })
    }
    return .metainfo(
        try Failure.telling(.system) { try BoundedFile.read(text, atMost: BencodeLimits.metainfo.byteCount) })
}
