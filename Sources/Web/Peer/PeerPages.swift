// The peer's page: files that the build puts into the program, its own and those that it shares with the tracker's.

import HTTPTypes

/// The peer's page: `/` is the page, `/peer/NAME` its own files, `/console/NAME` those that it shares with the tracker's.
enum PeerPages {
    static let routes: [APIRoute] =
        [ConsolePages.route("/", "peer.html", PackageResources.peer_html)]
        + own.map { ConsolePages.route("/peer/\($0.name)", $0.name, $0.bytes) }
        + ConsoleFiles.all.map { ConsolePages.route("/console/\($0.name)", $0.name, $0.bytes) }

    /// A test compares the list with the folder.
    private static var own: [(name: String, bytes: [UInt8])] { [] }
}
