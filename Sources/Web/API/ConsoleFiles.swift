// The files of the console's pages, by name: `Console/` beside this folder.

/// The files of the console's pages, by name; a test compares the list with the folder.
enum ConsoleFiles {
    static var index: [UInt8] { PackageResources.index_html }

    static var all: [(name: String, bytes: [UInt8])] {
        [
            ("style.css", PackageResources.style_css)
        ]
    }
}
