// A schedule in words.

import Primitives
import TrackerLogic
import Wire

/// A schedule in words: each move, what the node did, and where it stands.
struct ExplorerTrace {
    private var space: LocalSpace
    private var locals: [UInt32]
    private var lines: [String] = []

    init(_ space: LocalSpace, _ start: ExplorerWorld) {
        self.space = space
        locals = (0..<start.nodes).map { start.words[$0] }
    }

    consuming func tell(_ path: [Move]) -> [String] {
        for move in path { tell(move) }
        return lines
    }

    private mutating func tell(_ move: Move) {
        let before = locals[move.node]
        take(move)
        guard move.isDeath else { return }
        let leaveMessage = space.syntheticMessage(.leave, of: before)
        for other in locals.indices where other != move.node {
            take(Move(.deliver, other, space.envelope(leaveMessage, from: move.node, to: other)), isQuiet: true)
        }
    }

    private mutating func take(_ move: Move, isQuiet: Bool = false) {
        let run = space.run(move, of: locals[move.node], isTracing: true)
        locals[move.node] = space.step(move, of: locals[move.node]).next
        guard !isQuiet else { return }
        let column = TraceText.column(run.state.machine.inspection)
        let what =
            switch move.kind {
            case .stand: "misses the master and stands; "
            case .wait: "waits; "
            case .deliver, .write, .failWrite, .request, .restart: ""
            }
        lines.append("\(move.node + 1): \(what)" + (run.lines ?? []).joined(separator: "; ") + "  [\(column)]")
    }
}
