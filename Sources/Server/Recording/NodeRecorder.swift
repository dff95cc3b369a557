// Records a node on its thread.

import Datagrams
import Foundation
import Primitives
import Synchronization
import TrackerLogic
import Web
import Wire

/// Records a node on its thread: each step, and from time to time an image of the node.
///
/// The image is made of a copy, on another thread: arrays are copied when the node changes them, and not before. So no
/// step waits for it, but for what it changes first: a shard of the swarms, mostly.
final class NodeRecorder {
    private var recorder: Recorder
    private let board: RecordingBoard
    /// What is looked at after each step.
    var checks = LifeChecks()
    private let images = ImageMaker()
    private var awaitsImage = false
    private var slowest = Duration.zero

    init(_ recorder: Recorder, _ board: RecordingBoard) { (self.recorder, self.board) = (recorder, board) }

    /// Whether an image is to be begun before the next step.
    @inline(__always)
    var wantsImage: Bool { recorder.wantsImage && !awaitsImage }

    /// A step is about to be taken.
    @inline(__always)
    func willStep(_ event: Event, now: ClockReading, _ effects: Effects) {
        if awaitsImage { takeImage() }
        recorder.record(event, now: now, effects)
    }

    /// It is taken, and the node is there.
    @inline(__always)
    func stepped(_ effects: Effects, _ position: Position) { recorder.stepped(effects, position) }

    /// A promise was found broken.
    func raise(_ broken: LifeChecks.Broken) { board.raise(broken) }

    /// From time to time, whether or not there are steps.
    func examine(now: Instant) {
        if awaitsImage { takeImage() } else { recorder.idle() }
        let status = recorder.status
        board.note(
            RecordingFigures(
                isOn: true, seconds: status.since.map { Double((now - $0).nanoseconds) / 1e9 },
                byteCount: status.byteCount, imageByteCount: status.imageByteCount, isTooLarge: status.isTooLarge,
                slowestImage: Double(slowest.nanoseconds) / 1e9))
    }

    /// The life ends as it should.
    func end() { recorder.end() }

    /// Begins an image of the node, which waits for a copy of it, and for no more.
    func beginImage(of node: TrackerNode, now: ClockReading) {
        let began = Clock.monotonic()
        guard let ticket = recorder.beginImage(byteCount: node.imageByteCountEstimate, now: now) else { return }
        awaitsImage = true
        images.make(of: node, ticket)
        slowest = max(slowest, Clock.monotonic() - began)
    }

    private func takeImage() {
        guard let (bytes, ticket) = images.take() else { return }
        awaitsImage = false
        recorder.take(bytes, of: ticket)
    }
}

/// Makes images of nodes, one after another, each on a thread of its own.
private final class ImageMaker: Sendable {
    private let made = Mutex<(bytes: [UInt8], ticket: Recorder.ImageTicket)?>(nil)
    private let hasMade = Atomic<Bool>(false)

    func make(of node: TrackerNode, _ ticket: Recorder.ImageTicket) {
        Thread.detachNewThread { [self] in
            // Of this thread alone: clients that wait for the tracker's own come first. Not before the first image,
            // without which nothing can be replayed.
            if hasMade.exchange(true, ordering: .relaxed) {
                setpriority(__priority_which_t(PRIO_PROCESS.rawValue), 0, 19)
            }
            let bytes = node.image
            made.withLock { $0 = (bytes, ticket) }
        }
    }

    /// The image that is made, once.
    func take() -> (bytes: [UInt8], ticket: Recorder.ImageTicket)? {
        made.withLock { made in
            defer { made = nil }
            return made
        }
    }
}
