// A recording that is run again.

import Primitives
import Wire

/// A recording that is run again: the same machine over the same events, step for step.
///
/// Whoever runs it looks at each step's effects, and at whether they were the recorded ones.
public struct Replay: Sendable {
    /// A step that was run again.
    public struct Step: Sendable {
        /// What happened, and when.
        public var recorded: RecordedStep
        /// Whether its effects are the recorded ones; nil where nobody knows, for the life ended in it.
        public var agrees: Bool?
    }

    private var recording: Recording
    /// The tracker after the last step.
    public private(set) var node: TrackerNode
    /// Of the last step.
    public private(set) var effects = Effects()
    private var digest = EffectsDigest()
    /// Steps that were run.
    public private(set) var count = 0
    /// The first step whose effects were others, counted from 1; nil where all were the recorded ones.
    public private(set) var firstDifference: Int?

    /// Begins before the first step that is recorded.
    public init(_ recording: Recording) {
        self.recording = recording
        node = recording.node
    }

    /// The step that `next` is to run; nil behind the last.
    public func peek() -> RecordedStep? {
        var recording = recording
        return recording.next()
    }

    /// Runs the next step; nil behind the last.
    public mutating func next() -> Step? {
        guard let recorded = recording.next() else { return nil }
        effects.removeAll()
        node.step(recorded.event, now: recorded.now, into: &effects)
        count += 1
        let agrees = recorded.digest.map { $0 == digest.of(effects, node.state.position) }
        if agrees == false, firstDifference == nil { firstDifference = count }
        return Step(recorded: recorded, agrees: agrees)
    }
}
