// Files of a run: a picture, a text, a capture.

import Primitives
import Simulator

extension Plays {
    /// What came of the run in a slot, with all that files need; it is run once more for that.
    private static func files(
        _ slot: UInt32, recordsTrace: Bool, _ write: (Run, ScenarioResult) -> [UInt8]
    ) -> UInt32 {
        with(slot) { play in
            let result = play.scenario.run(recordsTrace: recordsTrace, recordsHistory: !recordsTrace)
            return Texts.say(write(play.run, result))
        }
    }

    /// A time in milliseconds; nil for a negative one.
    private static func time(_ milliseconds: Double) -> Instant? {
        milliseconds >= 0 && milliseconds < 1e12 ? Instant(nanoseconds: Int64(milliseconds * 1e6)) : nil
    }

    static func svg(_ slot: UInt32, _ from: Double, _ until: Double, _ hasKeepalives: Bool) -> UInt32 {
        files(slot, recordsTrace: false) { run, result in
            let diagram = result.diagram(
                of: run, from: time(from), until: time(until), hasKeepalives: hasKeepalives)
            return Array(diagram.svg().utf8)
        }
    }

    static func text(_ slot: UInt32) -> UInt32 {
        files(slot, recordsTrace: true) { run, result in
            var bytes: [UInt8] = []
            func add(_ line: String) {
                bytes.append(contentsOf: line.utf8)
                bytes.append(UInt8(ascii: "\n"))
            }
            add(run.command)
            for line in result.names.heads() { add(line) }
            for line in result.lines { add(line.words()) }
            add(result.hashLine)
            return bytes
        }
    }

    static func pcap(_ slot: UInt32) -> UInt32 { files(slot, recordsTrace: false) { $1.capture.bytes } }
}

/// A space-time diagram of the run in a slot, as SVG, between two times in milliseconds, which are negative for none.
@_expose(wasm, "svg")
@_cdecl("svg")
public func svg(_ slot: UInt32, _ from: Double, _ until: Double, _ hasKeepalives: UInt32) -> UInt32 {
    Plays.svg(slot, from, until, hasKeepalives != 0)
}

/// The whole trace of the run in a slot, as `tracker replay` prints it, below the command.
@_expose(wasm, "text")
@_cdecl("text")
public func text(_ slot: UInt32) -> UInt32 { Plays.text(slot) }

/// What clients and trackers sent in the run in a slot, as pcapng.
@_expose(wasm, "pcap")
@_cdecl("pcap")
public func pcap(_ slot: UInt32) -> UInt32 { Plays.pcap(slot) }
