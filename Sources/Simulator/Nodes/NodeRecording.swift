// What a simulated tracker leaves behind of its life, as a real one does.

import Primitives
import TrackerLogic
import Wire

/// What a simulated tracker leaves behind of its life, as a real one does, on memory that outlives it.
///
/// Images are taken as a real tracker takes them: of a copy, whose bytes come some steps later.
struct NodeRecording: Sendable {
    /// Steps until the bytes of an image are there.
    static let imageSteps = 5

    let room: RecordingRoom
    private var recorder: Recorder
    private var image: (ticket: Recorder.ImageTicket, node: TrackerNode, steps: Int)?

    init(byteCount: Int, _ node: TrackerNode, now: ClockReading) {
        room = RecordingRoom(byteCount: byteCount)
        recorder = Recorder(room: room, life: node.inspection.life, now: now)
    }

    /// A step is about to be taken.
    mutating func record(_ event: Event, _ node: TrackerNode, now: ClockReading, _ effects: Effects) {
        if recorder.wantsImage, image == nil {
            let ticket = recorder.beginImage(byteCount: node.imageByteCountEstimate, now: now)
            image = ticket.map { ($0, node, 0) }
        }
        image?.steps += 1
        if let taken = image, taken.steps == NodeRecording.imageSteps {
            recorder.take(taken.node.image, of: taken.ticket)
            image = nil
        }
        recorder.record(event, now: now, effects)
    }

    /// The step is taken.
    mutating func stepped(_ effects: Effects, _ position: Position) { recorder.stepped(effects, position) }

    /// The life is over: what is under way is written as a real tracker's other thread would have.
    mutating func end() {
        if let image { recorder.take(image.node.image, of: image.ticket) }
        image = nil
        for _ in 0..<64 { recorder.idle() }
    }
}
