// The files of the console's pages, by name: `Console/` beside this folder.

/// The files of the console's pages, by name; a test compares the list with the folder.
enum ConsoleFiles {
    static var index: [UInt8] { PackageResources.index_html }

    static var all: [(name: String, bytes: [UInt8])] {
        [
            ("api.js", PackageResources.api_js),
            ("app.js", PackageResources.app_js),
            ("canvas.js", PackageResources.canvas_js),
            ("changes.js", PackageResources.changes_js),
            ("charts.js", PackageResources.charts_js),
            ("dialog.js", PackageResources.dialog_js),
            ("dom.js", PackageResources.dom_js),
            ("format.js", PackageResources.format_js),
            ("frame.js", PackageResources.frame_js),
            ("lanes.js", PackageResources.lanes_js),
            ("login.js", PackageResources.login_js),
            ("moving.js", PackageResources.moving_js),
            ("overview.js", PackageResources.overview_js),
            ("parts.css", PackageResources.parts_css),
            ("passkeys.js", PackageResources.passkeys_js),
            ("peers.js", PackageResources.peers_js),
            ("route.js", PackageResources.route_js),
            ("sentence.js", PackageResources.sentence_js),
            ("settings.js", PackageResources.settings_js),
            ("signals.js", PackageResources.signals_js),
            ("story.js", PackageResources.story_js),
            ("stream.js", PackageResources.stream_js),
            ("style.css", PackageResources.style_css),
            ("swarms.js", PackageResources.swarms_js),
            ("table.js", PackageResources.table_js),
            ("theme.js", PackageResources.theme_js),
            ("timeline.js", PackageResources.timeline_js),
            ("torrents.js", PackageResources.torrents_js),
            ("trackers.js", PackageResources.trackers_js),
            ("users.js", PackageResources.users_js),
            ("widgets.js", PackageResources.widgets_js),
        ]
    }
}
