// The classic stories of a cluster, told by the simulator and read by people: `Transcripts/*.txt`.
//
// Each is the trace of a scenario whose faults are placed by hand, without the lines in which nothing changes. A
// change of the logic changes them: read the difference, then run with REWRITE=1.

import Foundation
import Primitives
import Simulator
import Testing
import TrackerLogic

@Suite("Transcripts", .computes)
struct TranscriptTests {
    @Test(arguments: Story.allCases)
    func `a story goes as it was written down`(_ story: Story) throws {
        let lines = story.tell()
        let folder = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "Transcripts")
        let file = folder.appending(path: "\(story.rawValue).txt")
        if Sweep.isRewriting {
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
            try (lines.joined(separator: "\n") + "\n").write(to: file, atomically: true, encoding: .utf8)
        }
        let kept = try String(contentsOf: file, encoding: .utf8).split(
            separator: "\n", omittingEmptySubsequences: false)
        #expect(lines == kept.dropLast().map(String.init))
    }
}
