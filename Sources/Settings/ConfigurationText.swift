// The documentation that follows from the table of settings: the example file, the chapter on settings, and help.

extension Setting {
    /// The example file: every setting with its meaning and its default.
    ///
    /// Read back, it changes nothing.
    public static func exampleFile() -> String {
        var text = """
            # The configuration of Swarmkeeper, with every setting at its default: tracker serve --config tracker.toml
            #
            # Durations are "90s", "30m", "1h30m" or seconds; numbers may be written 4_000_000 or "4M". Relative paths
            # start at the directory of this file. The environment variable named with each setting goes before this
            # file, and the flag before both; what the console has kept goes between file and environment. What is
            # commented out is not set, or follows from something else.

            """
        for section in SettingKey.sections {
            text += section.isEmpty ? "\n" : "\n[\(section)]\n"
            let settings = all.filter { $0.key.section == section }
            text += settings.map { $0.exampleLines() }.joined(separator: "\n")
        }
        return text
    }

    private func exampleLines() -> String {
        let sentences = note.isEmpty ? summary : "\(summary) \(note)"
        var text = wrapped(sentences, width: 98).map { "# \($0)\n" }.joined()
        text += "# (--\(flag), \(key.environmentName))\n"
        if let example {
            for line in wrapped("Default: \(defaultNote ?? "not set").", width: 98) { text += "# \(line)\n" }
            text += "# \(key.name) = \(example)\n"
        } else {
            text += "\(key.name) = \(defaultTOML)\n"
        }
        return text
    }

    /// The chapter on settings, as Markdown.
    public static func markdown() -> String {
        var text = """
            # Settings

            <!-- Made from the table in Sources/Settings/SettingsTable.swift, and checked by a test. -->

            Every setting of `tracker serve` can be given in a TOML file (`--config FILE`, or
            `SWARMKEEPER_CONFIG`), in the environment, and by a flag. Flags go before the environment, the
            environment before what the console has kept (`console.toml` in the data directory: docs/console.md), that
            before the file, the file before the defaults; a list is replaced as a whole.
            `examples/tracker.toml` is a file with every setting at its default.

            Durations are `90s`, `30m`, `1h30m` or a number of seconds; numbers may be written `4_000_000`
            or `4M`. In the environment a list has commas; `none` empties it. Relative paths in the file
            start at the file's directory, elsewhere at the working directory; `~/` is the home directory.

            Whatever is wrong is reported at once, each with its place, and the tracker does not start (exit code 78).

            """
        for section in SettingKey.sections {
            text += section.isEmpty ? "\n## Top of the file\n" : "\n## [\(section)]\n"
            text += "\n| key | flag | environment | default | meaning |\n|---|---|---|---|---|\n"
            for setting in all where setting.key.section == section { text += setting.markdownRow() + "\n" }
        }
        return text
    }

    private func markdownRow() -> String {
        let flagText =
            valueName.isEmpty ? "--\(flag)`, `--no-\(flag)" : "--\(flag) \(valueName)"
        let meaning = (note.isEmpty ? summary : "\(summary) \(note)").replacing("|", with: "\\|")
        let value = defaultNote ?? "`\(defaultText)`"
        return "| `\(key.name)` | `\(flagText)` | `\(key.environmentName)` | \(value) | \(meaning) |"
    }

    /// What `tracker serve --help` says of it.
    public var help: String {
        let sentences = note.isEmpty ? summary : "\(summary) \(note)"
        let several = isList ? " May be given several times." : ""
        return "\(sentences)\(several) (default: \(defaultText); \(key.environmentName))"
    }
}

/// Lines of whole words, none longer than the width unless a word is.
func wrapped(_ text: String, width: Int) -> [String] {
    var lines: [String] = []
    for word in text.split(separator: " ") {
        if let last = lines.last, last.count + 1 + word.count <= width {
            lines[lines.count - 1] = "\(last) \(word)"
        } else {
            lines.append(String(word))
        }
    }
    return lines
}
