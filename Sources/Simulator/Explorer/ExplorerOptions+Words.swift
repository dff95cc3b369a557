// The bounds of an explored world, in words.

/// The bounds of an explored world, in words: `nodes=3&elections=2&network=once`.
extension ExplorerOptions {
    private static let keys = [
        "nodes", "start", "disks", "network", "elections", "requests", "scrapes", "restarts", "mortal", "waits",
        "failures",
    ]

    /// The bounds that words name; what they do not name is as `init()` has it.
    ///
    /// - Throws: a sentence that says which word is wrong, and what to write instead.
    public init(words text: String) throws(WordsRefused) {
        self.init()
        for word in text.split(separator: "&") {
            let parts = word.split(separator: "=", omittingEmptySubsequences: false).map { String($0) }
            guard parts.count == 2, ExplorerOptions.keys.contains(parts[0]) else {
                throw WordsRefused(
                    "the bounds know nothing of \"\(WhatIf.shortened(word))\"; write key=value, with "
                        + ExplorerOptions.keys.joined(separator: ", "))
            }
            try set(parts[0], parts[1])
        }
        if let mortal, mortal >= nodes {
            throw WordsRefused("mortal is the place of a tracker from 0, and there are \(nodes); write a smaller one")
        }
    }

    private mutating func set(_ key: String, _ value: String) throws(WordsRefused) {
        func number(_ range: ClosedRange<Int>) throws(WordsRefused) -> Int {
            guard let number = WhatIf.number(value, in: range) else {
                throw WordsRefused(
                    "\(key) is \"\(WhatIf.shortened(value))\"; write a number from \(range.lowerBound) to "
                        + "\(range.upperBound)")
            }
            return number
        }
        func named<Item>(_ items: [Item], _ name: (Item) -> String) throws(WordsRefused) -> Item {
            guard let item = items.first(where: { name($0) == value }) else {
                throw WordsRefused(
                    "\(key) is \"\(WhatIf.shortened(value))\"; write one of "
                        + items.map(name).joined(separator: ", "))
            }
            return item
        }
        let budget = 0...ExplorerOptions.maxBudget
        switch key {
        case "nodes": nodes = try number(1...ExplorerOptions.maxNodes)
        case "start": start = try named(Start.allCases) { $0.rawValue }
        case "disks": disks = try named(Disks.allCases) { $0.rawValue }
        case "network": network = try named(Network.allCases) { $0.rawValue }
        case "elections": elections = try number(budget)
        case "requests": requests = try number(budget)
        case "scrapes": scrapes = try number(budget)
        case "restarts": restarts = try number(budget)
        case "mortal": mortal = try number(0...ExplorerOptions.maxNodes - 1)
        case "waits": waits = try number(budget)
        default: failures = try number(budget)
        }
    }
}
