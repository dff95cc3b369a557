// Where a tracker's console is.

import ArgumentParser
import Client
import Settings

/// Where a tracker's console is, and how one is let in.
enum ConsolePlace {
    static let standard = "127.0.0.1:6970"

    /// What to tell when asking a console has failed.
    static func failure(_ error: TrackerClientError, at console: String) -> Failure {
        guard case .unreachable = error else { return Failure(error) }
        return Failure(
            .unavailable,
            "no tracker's console listens at \(console); is a tracker running there, with a console at this address "
                + "(--console)?")
    }
}

struct ConsoleAccess: ParsableArguments {
    @Option(
        name: .customLong("token-file"),
        help: ArgumentHelp("File with the console's bearer token, where it asks for one.", valueName: "file"))
    var tokenFile: String?

    func client(of console: String) throws -> ConsoleClient {
        let place: TrackerURL
        do {
            place = try TrackerURL("http://\(console)")
        } catch {
            throw ValidationError("\"\(console)\" is not a host with a port; write for example 127.0.0.1:6970")
        }
        let token = try tokenFile.map { path in
            try Failure.telling(.system) { try ServerConfiguration.readToken(path) }
        }
        return ConsoleClient(host: place.host, port: place.port, token: token)
    }
}

/// The consoles of a cluster's trackers: any of them hands an order to the master.
struct ClusterConsoles: ParsableArguments {
    @Option(
        name: .customLong("console"), parsing: .singleValue,
        help: ArgumentHelp(
            "Where a tracker's console listens; may be given several times. (default: \(ConsolePlace.standard))",
            valueName: "host:port"))
    var consoles: [String] = []

    @OptionGroup var access: ConsoleAccess

    var all: [String] { consoles.isEmpty ? [ConsolePlace.standard] : consoles }

    /// The first console that answers, and what its tracker sees.
    ///
    /// - Throws: `Failure`, of the last one that was tried.
    func first() async throws -> (client: ConsoleClient, view: ClusterView) {
        var failure: Failure?
        for console in all {
            let client = try access.client(of: console)
            do throws(TrackerClientError) {
                return (client, try await client.cluster())
            } catch {
                failure = ConsolePlace.failure(error, at: console)
            }
        }
        throw failure ?? Failure(.failed, "no console was named")
    }
}
