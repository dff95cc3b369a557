// A run that is looked at from all sides: any step of it, forwards and back, and what would have been.

import Primitives

/// A run that is looked at from all sides: any step of it, forwards and back, and what would have been.
///
/// It runs to its end at once, and is written down (`PlayRecord`). A `World` is a value, so a copy is a checkpoint;
/// from the one before a step, that step is a few hundred transitions away. A branch, the same run with one more
/// what-if, begins at a checkpoint, too.
public struct Play: Sendable {
    /// A world after one of its steps.
    private struct Checkpoint: Sendable {
        var step: Int
        var world: World
    }

    /// Checkpoints of a run, at most: with more, every other one goes.
    package static let maxCheckpoints = 64
    /// Steps between two checkpoints at first.
    private static let firstGap = 64
    /// Steps between two checkpoints near the step that was looked at last.
    private static let nearGap = 16

    /// What was run.
    public private(set) var run: Run
    /// What is exactly run.
    public private(set) var scenario: Scenario
    package private(set) var record: PlayRecord
    /// What came of it.
    public private(set) var result: ScenarioResult
    package private(set) var periods: [History.Period] = []
    /// In the order of their steps; the first is step 0.
    private var checkpoints: [Checkpoint] = []
    private var gap = Play.firstGap
    /// Where it stands in the end.
    private var end: Checkpoint
    /// Checkpoints near the step that was looked at last, which is the last of them.
    private var near: [Checkpoint] = []

    // MARK: - Opening

    /// Runs to the end.
    ///
    /// - Parameters:
    ///   - run: what is run.
    ///   - other: a run that may have begun in the same way; its beginning is taken over then.
    public init(_ run: Run, sharing other: Play? = nil) {
        if let other, other.run.hasSameBeginning(as: run) {
            self = other
            branch(to: run)
            return
        }
        self.run = run
        scenario = run.scenario
        var world = scenario.world(isRecording: true, keepsHistory: false, isWatching: true)
        record = PlayRecord(trackers: world.nodes.count)
        world.carryOutWhatIfs()
        record.add(&world)
        let start = Checkpoint(step: 0, world: world)
        checkpoints = [start]
        end = start
        result = scenario.result(of: world)
        goOn()
    }

    /// Goes back to where another run begins to differ, and runs that one to its end.
    private mutating func branch(to run: Run) {
        self.run = run
        scenario = run.scenario
        near = []
        checkpoints.removeAll { !$0.world.player.mayGoOn(with: run.whatIfs) }
        var last = checkpoints[checkpoints.count - 1]
        if end.world.waitsForPlayer, end.world.player.mayGoOn(with: run.whatIfs) { last = end }
        last.world.player.goOn(with: run.whatIfs)
        record.cut(after: last.step)
        end = last
        end.world.carryOutWhatIfs()
        record.note(&end.world)
        goOn()
    }

    /// Runs from where it stands in the end, and makes that the end.
    private mutating func goOn() {
        while end.world.isGoingOn {
            guard end.world.advance() else { break }
            end.step += 1
            record.add(&end.world)
            if end.step % gap == 0 { keep(end) }
        }
        if !end.world.waitsForPlayer {
            end.world.finish()
            record.note(&end.world)
        }
        periods = end.world.history.periods
        result = scenario.result(of: end.world)
    }

    /// After how many steps another run begins to differ; nil where it is another one from the beginning.
    public func stepsShared(with other: Run) -> Int? {
        guard run.hasSameBeginning(as: other) else { return nil }
        let place = zip(run.whatIfs, other.whatIfs).prefix { $0 == $1 }.count
        let steps = [run, other].compactMap { $0.whatIfs.count > place ? $0.whatIfs[place].step : nil }
        return steps.min() ?? Int.max
    }

    /// Worlds that are kept, so that each step is near one.
    package var checkpointCount: Int { checkpoints.count }

    /// Where clients, strangers and peers are.
    var addresses: [SocketAddress] { end.world.addresses }

    // MARK: - Looking

    /// The last step.
    public var steps: Int { record.steps }

    /// The world after a step; what a step beyond the last one means is the last one.
    mutating func world(after step: Int) -> World {
        let step = max(0, min(step, end.step))
        if step == end.step { return end.world }
        let far = checkpoints.last { $0.step <= step } ?? checkpoints[0]
        var place = far
        if let known = near.last(where: { $0.step <= step }), known.step > far.step {
            place = known
        } else {
            place.world.player.goOn(with: run.whatIfs)
            place.world.trace.stopRecording()
            near.removeAll()
        }
        while place.step < step, place.world.advance() {
            place.step += 1
            place.world.forgetNotes()
            guard place.step % Play.nearGap == 0, near.last.map({ $0.step < place.step }) ?? true else { continue }
            if near.count > Play.maxCheckpoints { near.removeFirst(near.count / 2) }
            near.append(place)
        }
        return place.world
    }

    private mutating func keep(_ checkpoint: Checkpoint) {
        checkpoints.append(checkpoint)
        guard checkpoints.count > Play.maxCheckpoints else { return }
        gap *= 2
        checkpoints.removeAll { $0.step % gap != 0 }
    }
}
