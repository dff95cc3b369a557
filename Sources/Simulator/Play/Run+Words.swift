// A run in words: one text for a link, a command and the module for browsers.

import Primitives
import TrackerLogic

/// A run in words: `seed=17&profile=paxos&if=412.kill.2.8000`, or `story=master-dies`.
///
///     words   word & word …, each key once
///     word    key = value; characters of the value may be written as %41
///     keys    seed, or story; profile, stress, nodes, seconds, clients, only-trackers, only-clients, faults,
///             injections, without: as the flags of `tracker replay`; if: what-ifs, with commas between them
extension Run {
    /// Words of one run, at most.
    public static let maxWordsByteCount = 16_384

    /// Of the words, in the order in which they are written.
    private static let keys = [
        "seed", "story", "profile", "stress", "nodes", "seconds", "clients", "only-trackers", "only-clients", "faults",
        "injections", "without", "if",
    ]

    /// The words that name exactly this run; read back, they are equal.
    public var words: String {
        var words: [String] = []
        func add(_ key: String, _ value: String?) { if let value { words.append("\(key)=\(value)") } }
        func list(_ items: [String]?) -> String? {
            items.map { $0.isEmpty ? "none" : $0.joined(separator: ",") }
        }
        add("story", story?.rawValue)
        if story == nil {
            add("seed", "\(seed)")
            add("profile", profile?.rawValue)
            add("stress", stress?.rawValue)
            add("nodes", nodes.map { "\($0)" })
            add("seconds", seconds.map { "\($0)" })
            add("clients", clients.map { "\($0)" })
            add("only-trackers", list(onlyTrackers?.map { "\($0)" }))
            add("only-clients", list(onlyClients?.map { "\($0)" }))
            add("faults", list(faults?.map { $0.description }))
            add("injections", list(injections?.map { $0.description }))
            if !without.isEmpty { add("without", list(without.map { $0.rawValue })) }
        }
        if !whatIfs.isEmpty { add("if", list(whatIfs.map { $0.description })) }
        return words.joined(separator: "&")
    }

    /// Whether another run is the same but for its what-ifs.
    func hasSameBeginning(as other: Run) -> Bool {
        var (left, right) = (self, other)
        left.whatIfs = []
        right.whatIfs = []
        return left == right
    }

    /// The run that words name.
    ///
    /// - Throws: a sentence that says which word is wrong, why, and what to write instead.
    public init(words text: String) throws(WordsRefused) {
        guard text.utf8.count <= Run.maxWordsByteCount else {
            throw WordsRefused(
                "the words of a run have \(text.utf8.count) bytes, and \(Run.maxWordsByteCount) is the most; leave "
                    + "some what-ifs out")
        }
        var values: [(key: String, value: String)] = []
        for word in text.split(separator: "&") {
            let (key, value) = try Run.keyAndValue(word)
            if values.contains(where: { $0.key == key }) {
                throw WordsRefused("\(key) is there twice; leave one of them out")
            }
            values.append((key, value))
        }
        func value(_ key: String) -> String? { values.first { $0.key == key }?.value }
        if let name = value("story") {
            self = try Run.story(name, with: values.map { $0.key })
        } else {
            guard let seed = value("seed") else {
                throw WordsRefused("neither seed nor story is named; write for example seed=17&profile=paxos")
            }
            self.init(seed: try Run.seed(seed))
            try read(value)
        }
        if let list = value("if") { whatIfs = try WhatIf.list(list) }
    }

    private static func keyAndValue(_ word: Substring) throws(WordsRefused) -> (String, String) {
        guard let place = word.firstIndex(of: "=") else {
            throw WordsRefused("\"\(WhatIf.shortened(word))\" has no value; write key=value, for example seed=17")
        }
        let key = String(word[..<place])
        guard keys.contains(key) else {
            throw WordsRefused(
                "nothing of a run is called \"\(WhatIf.shortened(key))\"; there are \(keys.joined(separator: ", "))")
        }
        guard let value = decoded(word[word.index(after: place)...]), !value.isEmpty else {
            throw WordsRefused("\(key) has no value that can be read; write \(key)=… , a % only before two hex digits")
        }
        return (key, value)
    }

    /// Text in which `%41` stands for a character; nil where it is none.
    private static func decoded(_ text: Substring) -> String? {
        var bytes: [UInt8] = []
        var rest = Array(text.utf8)[...]
        func digit(_ byte: UInt8) -> UInt8? {
            switch byte {
            case 48...57: byte - 48
            case 65...70: byte - 55
            case 97...102: byte - 87
            default: nil
            }
        }
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "%") else {
                bytes.append(byte)
                continue
            }
            guard let high = rest.popFirst().flatMap(digit), let low = rest.popFirst().flatMap(digit) else {
                return nil
            }
            bytes.append(high << 4 | low)
        }
        return bytes.allSatisfy { (0x21...0x7E).contains($0) } ? String(decoding: bytes, as: UTF8.self) : nil
    }

    private static func story(_ name: String, with keys: [String]) throws(WordsRefused) -> Run {
        guard let story = Story.named(name) else {
            throw WordsRefused(
                "there is no story \"\(WhatIf.shortened(name))\"; there are "
                    + Story.allCases.map { $0.rawValue }.joined(separator: ", "))
        }
        if let other = keys.first(where: { $0 != "story" && $0 != "if" }) {
            throw WordsRefused("a story says everything but what-ifs itself; leave \(other) out")
        }
        var run = Run(seed: story.scenario.seed)
        run.story = story
        return run
    }

    private static func seed(_ text: String) throws(WordsRefused) -> UInt64 {
        guard text.utf8.allSatisfy({ (48...57).contains($0) }), let seed = UInt64(text) else {
            throw WordsRefused(
                "seed \"\(WhatIf.shortened(text))\" is no whole number from 0 to \(UInt64.max); write for example "
                    + "seed=17")
        }
        return seed
    }

    private mutating func read(_ value: (String) -> String?) throws(WordsRefused) {
        if let name = value("profile") {
            profile = Profile(rawValue: name)
            if profile == nil { throw Run.noSuch("profile", name, Run.profileNames) }
        }
        if let name = value("stress") {
            stress = Stress.named(name)
            if stress == nil { throw Run.noSuch("stress", name, Run.stressNames) }
        }
        nodes = try Run.number(value("nodes"), "nodes", in: Run.nodeRange)
        seconds = try Run.number(value("seconds"), "seconds", in: Run.secondsRange)
        clients = try Run.number(value("clients"), "clients", in: Run.clientRange)
        if profile == .alone, let nodes, nodes != 1 {
            throw WordsRefused("profile alone is one tracker, and nodes is \(nodes); leave nodes out")
        }
        onlyTrackers = try Run.list(value("only-trackers"), "only-trackers", "1,3") { Run.numbers($0) }
        if onlyTrackers == [] { throw WordsRefused("only-trackers names none; write for example only-trackers=1,3") }
        onlyClients = try Run.list(value("only-clients"), "only-clients", "0,5") { Run.numbers($0, from: 0) }
        faults = try Run.list(value("faults"), "faults", "3,17/4") { Run.faults($0) }
        injections = try Run.list(value("injections"), "injections", "2-okSent-1") { Run.injections($0) }
        guard let names = value("without"), names != "none" else { return }
        for name in names.split(separator: ",", omittingEmptySubsequences: false) {
            guard let noise = Noise(rawValue: String(name)) else {
                throw Run.noSuch("trouble to leave out", String(name), Noise.allCases.map { $0.rawValue })
            }
            if !without.contains(noise) { without.append(noise) }
        }
    }

    private static func noSuch(_ what: String, _ name: String, _ names: [String]) -> WordsRefused {
        WordsRefused(
            "there is no \(what) \"\(WhatIf.shortened(name))\"; there are \(names.joined(separator: ", "))")
    }

    private static func number(
        _ text: String?, _ key: String, in range: ClosedRange<Int>
    ) throws(WordsRefused) -> Int? {
        guard let text else { return nil }
        guard let number = WhatIf.number(text, in: range) else {
            throw WordsRefused(
                "\(key) is \"\(WhatIf.shortened(text))\"; write a number from \(range.lowerBound) to "
                    + "\(range.upperBound)")
        }
        return number
    }

    private static func list<Item>(
        _ text: String?, _ key: String, _ example: String, _ read: (String) -> [Item]?
    ) throws(WordsRefused) -> [Item]? {
        guard let text else { return nil }
        guard let items = read(text) else {
            throw WordsRefused(
                "\(key) is \"\(WhatIf.shortened(text))\", which cannot be read; write for example \(key)=\(example)"
                    + (key == "only-trackers" ? "" : ", or \(key)=none"))
        }
        return items
    }
}
