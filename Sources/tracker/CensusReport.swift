// What happened how often in a sweep, for people and for programs.

import Simulator

extension CensusByProfile {
    /// A table of each group: a column of counts for each profile, zeros first.
    func text() -> String {
        let columns = profiles.map { "\($0.rawValue) (\(Figures.grouped(scenarioCount($0))))" }
        var text = ""
        for group in Census.Group.allCases {
            var rows = [columns + [group.title]]
            for line in lines(group) { rows.append(line.counts.map { Figures.grouped($0) } + [line.name]) }
            var table = TextTable(rows: rows)
            table.alignments = Array(repeating: .right, count: columns.count) + [.left]
            text += table.text { Terminal.output.styled($0, .bold) } + "\n"
        }
        return text
    }
}

/// By profile, then by group, then by name: how often it happened, zeros too. The keys are part of the command's
/// interface.
extension CensusByProfile: Encodable {
    private struct Key: CodingKey {
        var stringValue: String
        var intValue: Int? { nil }

        init(_ text: String) { stringValue = text }
        init?(stringValue: String) { self.init(stringValue) }
        init?(intValue: Int) { nil }
    }

    /// Writes the counts as objects in each other.
    public func encode(to encoder: any Encoder) throws {
        var all = encoder.container(keyedBy: Key.self)
        for profile in profiles {
            var groups = all.nestedContainer(keyedBy: Key.self, forKey: Key(profile.rawValue))
            try groups.encode(scenarioCount(profile), forKey: Key("scenarios"))
            for group in Census.Group.allCases {
                let key = Key(group.title.lowercased().replacing(" ", with: "_"))
                var counts = groups.nestedContainer(keyedBy: Key.self, forKey: key)
                for row in self[profile].rows where row.group == group {
                    try counts.encode(row.count, forKey: Key(row.name))
                }
            }
        }
    }
}
