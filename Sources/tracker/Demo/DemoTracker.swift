// One tracker of the demonstration.

import Foundation
import Settings
import Synchronization

/// What a tracker's process does, as its parent hears of it.
enum DemoEvent: Sendable {
    case line(id: Int, DemoLine)
    case ended(id: Int, process: Int32, how: String)
}

/// A line of a tracker's log.
struct DemoLine: Sendable, Decodable {
    var level: String
    var message: String
    var role: String?
    var epoch: String?
    var master: String?
    var tracker: String?
    var index: String?

    /// For people: the message, and what it is about.
    var text: String {
        var text = message
        if let tracker { text += ": tracker \(tracker)" }
        if let role { text += " as \(role)" }
        if let master { text += " of tracker \(master)" }
        if let epoch { text += ", epoch \(epoch)" }
        if let index { text += ", entry \(index)" }
        return text
    }

    var isOfInterest: Bool { ["notice", "warning", "error", "critical"].contains(level) }
}

/// One tracker of the demonstration: a process of its own, whose log is read line by line.
final class DemoTracker: Sendable {
    let id: Int
    let process: Int32
    private let child: Child

    // Foundation's process is used from one task only.
    private struct Child: @unchecked Sendable {
        let process: Process
        /// Held open for as long as the tracker is to live: it ends when this does, so that none outlives its parent.
        let input: Pipe
    }

    /// Starts a tracker.
    ///
    /// - Throws: where the program cannot be run.
    init(
        id: Int, program: URL, arguments: [String], events: AsyncStream<DemoEvent>.Continuation
    ) throws {
        let process = Process()
        let (input, errors) = (Pipe(), Pipe())
        process.executableURL = program
        process.arguments = arguments
        // What is set for a tracker of one's own is not for these.
        process.environment = ProcessInfo.processInfo.environment.filter {
            !$0.key.hasPrefix(SettingKey.environmentPrefix)
        }
        process.standardInput = input
        process.standardOutput = FileHandle.nullDevice
        process.standardError = errors
        let rest = Mutex<[UInt8]>([])
        errors.fileHandleForReading.readabilityHandler = { handle in
            let data = handle.availableData
            guard !data.isEmpty else {
                handle.readabilityHandler = nil
                return
            }
            for line in rest.withLock({ Self.lines(data, &$0) }) { events.yield(.line(id: id, line)) }
        }
        process.terminationHandler = { ended in
            let status = ended.terminationStatus
            let how =
                switch ended.terminationReason {
                case .exit: status == 0 ? "has stopped" : "has ended with exit code \(status)"
                case .uncaughtSignal: status == SIGKILL ? "was killed" : "was ended by signal \(status)"
                @unknown default: "has ended"
                }
            events.yield(.ended(id: id, process: ended.processIdentifier, how: how))
        }
        try process.run()
        self.id = id
        self.process = process.processIdentifier
        child = Child(process: process, input: input)
    }

    /// Whole lines of what has come so far.
    private static func lines(_ data: Data, _ rest: inout [UInt8]) -> [DemoLine] {
        rest += data
        guard let end = rest.lastIndex(of: UInt8(ascii: "\n")) else { return [] }
        let whole = rest[...end]
        rest = Array(rest[(end + 1)...])
        return whole.split(separator: UInt8(ascii: "\n")).map { line in
            (try? JSONDecoder().decode(DemoLine.self, from: Data(line)))
                ?? DemoLine(level: "error", message: String(decoding: line, as: UTF8.self))
        }
    }

    /// Asks it to stop in good order.
    func stop() { if child.process.isRunning { child.process.terminate() } }

    func kill() { if child.process.isRunning { _ = Foundation.kill(process, SIGKILL) } }
}
