// `tracker peer`.

import ArgumentParser
import Bus
import Foundation
import PeerHost
import Primitives
import Settings
import Web

/// `tracker peer`.
struct PeerCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "peer",
        abstract: "Keep many torrents, with a page to steer them by.",
        discussion: """
            All torrents lie below --path, and so does the record of them: after a restart each goes on as it was. The \
            page is for this machine alone, unless --console names another address; then whoever asks needs the token \
            of --console-token-file.

            SIGTERM and SIGINT end it in good order: trackers are told, and what is verified is noted.
            """)

    @Option(help: ArgumentHelp("Where all torrents lie, and the record of them.", valueName: "dir"))
    var path: String

    @Option(
        help: ArgumentHelp(
            "Where the page is served; port 0 lets the system choose; off for none.",
            valueName: "host:port|off"))
    var console = "127.0.0.1:6980"

    @Option(help: ArgumentHelp("File with the bearer token that the page asks for.", valueName: "file"))
    var consoleTokenFile: String?

    @Option(help: ArgumentHelp("Certificate chain of the page, as PEM; needs --console-key.", valueName: "file"))
    var consoleCertificate: String?

    @Option(help: ArgumentHelp("Private key of the certificate, as PEM.", valueName: "file"))
    var consoleKey: String?

    @Option(
        parsing: .singleValue,
        help: ArgumentHelp(
            "Where peers may call; may be repeated. Unless told: all addresses, port 6881.", valueName: "host:port"),
        transform: readAddress)
    var listen: [SocketAddress] = []

    @Option(
        help: ArgumentHelp(
            "Bytes a second of all torrents together, as in 500K or 2M; kept over restarts.", valueName: "size"),
        transform: readRate)
    var maxDown: Int?

    @Option(
        help: ArgumentHelp(
            "Bytes a second of all torrents together, as in 500K or 2M; kept over restarts.", valueName: "size"),
        transform: readRate)
    var maxUp: Int?

    @Option(help: ArgumentHelp("Connections of a torrent, unless it has a limit of its own.", valueName: "number"))
    var maxPeers = 50

    @Flag(help: "Tell the local network, and look for peers there (BEP 14).")
    var lsd = false

    @Flag(help: "Tell peers of no others, and take none from them (BEP 11).")
    var noPex = false

    @Flag(name: .customLong("json"), help: "Say where it listens as one JSON object, once it does.")
    var isJSON = false

    func validate() throws {
        guard (1...1_000).contains(maxPeers) else { throw ValidationError("--max-peers is 1 to 1,000") }
        guard (consoleCertificate == nil) == (consoleKey == nil) else {
            throw ValidationError("--console-certificate and --console-key are given together")
        }
        if console != "off" { _ = try readAddress(console) }
    }

    func run() async throws {
        // A peer that hangs up while it is answered is no reason to end.
        signal(SIGPIPE, SIG_IGN)
        var options = PeerHostOptions(
            directory: path, listen: listen.isEmpty ? [SocketAddress(ipv4: 0, port: 6881)] : listen, version: version)
        options.console = try place()
        (options.maxDown, options.maxUp, options.maxPeers) = (maxDown, maxUp, maxPeers)
        (options.announcesLocally, options.exchangesPeers) = (lsd, !noPex)
        let directory = path
        do {
            try await PeerProgram(options).run { places in
                report(places, directory)
            }
        } catch let error as ListenFailure where error.cause == .tokenMissing {
            throw Failure(.configuration, error.description)
        } catch {
            throw Failure(.system, "\(error)")
        }
    }

    private func place() throws -> PeerHostOptions.Console? {
        guard console != "off" else { return nil }
        var place = PeerHostOptions.Console(address: try readAddress(console))
        place.token = try consoleTokenFile.map { path in
            try Failure.telling(.system) { try ServerConfiguration.readToken(path) }
        }
        if let consoleCertificate, let consoleKey { place.tls = (consoleCertificate, consoleKey) }
        return place
    }

    private struct Document: Encodable {
        var page: String?
        var listen: [String]
        var transfers: Int
    }

    private func report(_ places: PeerProgram.Places, _ directory: String) {
        let peers = places.peers.map { "\($0)" }
        guard !isJSON else {
            let encoder = JSONEncoder()
            encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
            let document = Document(page: places.page, listen: peers, transfers: places.transferCount)
            if let line = try? encoder.encode(document) {
                Terminal.output.write(String(decoding: line, as: UTF8.self) + "\n")
            }
            return
        }
        var table = TextTable(.left, .left)
        table.add("page", places.page ?? "none (--console off)")
        table.add("peers call", peers.joined(separator: ", "))
        table.add("directory", "\(directory), with \(Figures.counted(places.transferCount, "transfer"))")
        Terminal.output.write(table.text())
    }
}
