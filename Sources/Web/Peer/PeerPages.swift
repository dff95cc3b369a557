// The peer's page: files that the build puts into the program, its own and those that it shares with the tracker's.

import HTTPTypes

/// The peer's page: `/` is the page, `/peer/NAME` its own files, `/console/NAME` those that it shares with the
/// tracker's.
enum PeerPages {
    static let routes: [APIRoute] =
        [ConsolePages.route("/", "peer.html", PackageResources.peer_html)]
        + own.map { ConsolePages.route("/peer/\($0.name)", $0.name, $0.bytes) }
        + ConsoleFiles.all.map { ConsolePages.route("/console/\($0.name)", $0.name, $0.bytes) }

    /// A test compares the list with the folder.
    private static var own: [(name: String, bytes: [UInt8])] {
        [
            ("peer-actions.js", PackageResources.peer_actions_js),
            ("peer-add.js", PackageResources.peer_add_js),
            ("peer-create.js", PackageResources.peer_create_js),
            ("peer-files.js", PackageResources.peer_files_js),
            ("peer-folders.js", PackageResources.peer_folders_js),
            ("peer-limits.js", PackageResources.peer_limits_js),
            ("peer-others.js", PackageResources.peer_others_js),
            ("peer-pieces.js", PackageResources.peer_pieces_js),
            ("peer-settings.js", PackageResources.peer_settings_js),
            ("peer-stream.js", PackageResources.peer_stream_js),
            ("peer-token.js", PackageResources.peer_token_js),
            ("peer-transfer.js", PackageResources.peer_transfer_js),
            ("peer-transfers.js", PackageResources.peer_transfers_js),
            ("peer-words.js", PackageResources.peer_words_js),
            ("peer.css", PackageResources.peer_css),
            ("peer.js", PackageResources.peer_js),
        ]
    }
}
