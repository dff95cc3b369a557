// A run told as a story, one sentence a step.

import Primitives

extension Play {
    /// A step of a story.
    public struct GuideStep: Sendable, Hashable {
        /// The step that has the line.
        public var step: Int
        /// When it was.
        public var time: Instant
        /// For people: what matters of the line.
        public var sentence: String
        /// The line of the trace.
        public var text: String
    }

    /// The run as a guided story: the lines that its transcript has, as `Story.tell` chooses them, in sentences.
    public var guide: [GuideStep] {
        var step = 0
        return Story.told(scenario.run(recordsTrace: true).lines).map { line in
            // The first step from there on that has the line; what time has ended is told in the next step.
            if let found = (step...steps).first(where: { record.lines(of: $0).contains(line.text) }) { step = found }
            return GuideStep(step: step, time: line.time, sentence: Play.sentence(line.text), text: line.text)
        }
    }

    /// What matters of a line: what a tracker comes to, and where that is nothing, what it hears and writes.
    static func sentence(_ text: String) -> String {
        let parts = Play.parts(text)
        var told = Array(parts.dropFirst()).filter { part in
            !["tells ", "writes ", "answers client", "answers a stranger"].contains { part.hasPrefix($0) }
        }
        let saysSomething = !told.isEmpty
        if told.isEmpty {
            let rest = parts.dropFirst()
            told = Array(rest.filter { $0.hasPrefix("tells ") }.prefix(2)) + rest.filter { $0.hasPrefix("writes ") }
        }
        let subject = parts[0]
        // "tracker 2 wakes; misses the master": that it wakes is of no interest then.
        let name = subject.split(separator: " ").prefix(2).joined(separator: " ")
        let isTracker = subject.hasPrefix("tracker ")
        let saysLittle = isTracker && !told.isEmpty && (subject == "\(name) wakes" || subject.hasPart(" hears "))
        var sentence = saysLittle && saysSomething ? "\(name) \(told.removeFirst())" : subject
        for (place, part) in told.enumerated() { sentence += place == told.count - 1 ? ", and \(part)" : ", \(part)" }
        return sentence.prefix(1).uppercased() + sentence.dropFirst() + "."
    }

    /// What stands between semicolons.
    private static func parts(_ text: String) -> [String] {
        text.split(separator: ";").map { part in
            var part = part
            while part.first == " " { part.removeFirst() }
            return String(part)
        }
    }
}
