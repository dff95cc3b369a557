// Runs in words: read, written and refused.

import Primitives
import Simulator
import Testing

@Suite("Words of a run", .computes)
struct RunWordsTests {
    private func refusal(_ words: String) -> String {
        do throws(WordsRefused) {
            let run = try Run(words: words)
            return "no refusal, but \(run.words)"
        } catch {
            return error.description
        }
    }

    /// Some run, of whatever may be named.
    private func drawn(_ random: inout RandomStream) -> Run {
        var run = Run(seed: random.oneIn(3) ? random.next() : UInt64(random.below(1000)))
        if random.oneIn(8) {
            run.story = Story.allCases[random.below(Story.allCases.count)]
            run.seed = 1
        } else {
            if random.oneIn(2) { run.profile = Profile.allCases[random.below(Profile.allCases.count)] }
            if random.oneIn(2) { run.stress = Stress.allCases[random.below(Stress.allCases.count)] }
            if random.oneIn(3), run.profile != .alone { run.nodes = 1 + random.below(30) }
            if random.oneIn(3) { run.seconds = 1 + random.below(3600) }
            if random.oneIn(3) { run.clients = random.below(1001) }
            if random.oneIn(3) { run.onlyTrackers = [1, 3] }
            if random.oneIn(3) { run.onlyClients = random.oneIn(2) ? [] : [0, 5] }
            if random.oneIn(3) { run.faults = random.oneIn(2) ? [] : [ChosenFault(3), ChosenFault(17, dividedBy: 4)] }
            if random.oneIn(3) { run.injections = [Injection(tracker: 2, moment: .okSent, count: 1)] }
            if random.oneIn(3) { run.without = [.bus, .scrapers] }
        }
        var step = random.below(5)
        while random.below(4) > 0 {
            run.whatIfs.append(WhatIf(after: step, action(&random)))
            step += 1 + random.below(500)
        }
        return run
    }

    private func action(_ random: inout RandomStream) -> WhatIf.Action {
        let (id, place) = (UInt64(1 + random.below(99_999)), random.below(30))
        let milliseconds = 1 + random.below(60_000)
        return switch random.below(13) {
        case 0: .drop(id)
        case 1: .delay(id, milliseconds: milliseconds)
        case 2: .kill(place, milliseconds: random.oneIn(3) ? 0 : milliseconds)
        case 3: .pause(place, milliseconds: milliseconds)
        case 4: .cut([0, 2, 29], milliseconds: milliseconds)
        case 5: .fence(place, milliseconds: milliseconds)
        case 6: .disk(place, milliseconds: milliseconds)
        case 7: .wake(place)
        case 8: .hand(place, id: UInt32(1 + random.below(200)))
        case 9: .net
        case 10: .take(id)
        case 11: .time
        default: .auto
        }
    }

    @Test func `what is written is read back`() throws {
        var random = RandomStream(seed: 4, stream: 4)
        for _ in 0..<2000 {
            let run = drawn(&random)
            #expect(try Run(words: run.words) == run, "\(run.words)")
        }
    }

    @Test func `what a browser writes is read, too`() throws {
        let run = try Run(words: "if=412.kill.2.8000%2C500.cut.0-2.5000&seed=17&faults=3%2c17%2F4&profile=paxos")
        #expect(run.words == "seed=17&profile=paxos&faults=3,17/4&if=412.kill.2.8000,500.cut.0-2.5000")
        #expect(
            run.command == "tracker replay 17 --profile paxos --faults 3,17/4 --what-if 412.kill.2.8000 "
                + "--what-if 500.cut.0-2.5000")
        let story = try Run(words: "story=master-dies&if=9.net")
        #expect(story.command == "tracker replay --words 'story=master-dies&if=9.net'")
    }

    @Test(arguments: [
        ("", "neither seed nor story"), ("profile=paxos", "neither seed nor story"),
        ("seed=", "no value"), ("seed", "no value"), ("seed=-1", "no whole number"), ("seed=1e3", "no whole number"),
        ("seed=18446744073709551616", "no whole number"), ("seed=1&seed=2", "seed is there twice"),
        ("seed=1&sead=2", "nothing of a run is called \"sead\"; there are seed, story"),
        ("seed=1&profile=paxo", "no profile \"paxo\"; there are classic"),
        ("seed=1&stress=calm", "no stress \"calm\"; there are slow"),
        ("seed=1&nodes=31", "from 1 to 30"), ("seed=1&nodes=0", "from 1 to 30"), ("seed=1&nodes=+3", "from 1 to 30"),
        ("seed=1&seconds=3601", "from 1 to 3600"), ("seed=1&clients=1001", "from 0 to 1000"),
        ("seed=1&profile=alone&nodes=3", "alone is one tracker"),
        ("seed=1&only-trackers=none", "names none"), ("seed=1&only-trackers=a", "only-trackers=1,3"),
        ("seed=1&only-clients=-1", "or only-clients=none"), ("seed=1&faults=0", "faults=3,17/4"),
        ("seed=1&injections=2-never-1", "injections=2-okSent-1"),
        ("seed=1&without=noise", "no trouble to leave out \"noise\"; there are network"),
        ("story=no-such", "no story \"no-such\"; there are clean-start"),
        ("story=lowest&seed=2", "leave seed out"), ("seed=1&profile=%4", "two hex digits"),
        ("seed=1&profile=%C3%A9", "can be read"), ("seed=1&if=", "no value"),
        ("seed=1&if=kill.2", "does not begin with a step"), ("seed=1&if=412", "does not begin with a step"),
        ("seed=1&if=-1.net", "does not begin with a step"),
        ("seed=1&if=5.melt.2", "which nobody can do; there are drop"),
        ("seed=1&if=5.drop", "lacks the id of an event"), ("seed=1&if=5.drop.0", "a number of 1 to"),
        ("seed=1&if=5.drop.x", "\"x\" for the id of an event"), ("seed=1&if=5.kill.30.9", "a number of 0 to 29"),
        ("seed=1&if=5.kill.2", "lacks milliseconds"), ("seed=1&if=5.pause.2.0", "a number of 1 to 60000"),
        ("seed=1&if=5.kill.2.60001", "a number of 0 to 60000"), ("seed=1&if=5.cut.0-0.9", "written 0-2"),
        ("seed=1&if=5.cut..9", "written 0-2"), ("seed=1&if=5.hand.2.0", "a number of 1 to"),
        ("seed=1&if=5.net.2", "more numbers than it needs"),
        ("seed=1&if=9.net,5.wake.1", "put them in the order of their steps"),
        ("seed=1&if=9.time,9.wake.1", "begin it with 10"), ("seed=1&if=9.net,", "does not begin with a step"),
    ])
    func `what is wrong is refused with a sentence`(_ words: String, _ part: String) {
        #expect(refusal(words).contains(part), "\(words): \(refusal(words))")
    }

    @Test func `long words are refused, and words of any bytes never trap`() {
        let list = (0...1000).map { "\($0).net" }.joined(separator: ",")
        #expect(refusal("seed=1&if=\(list)").contains("1001 what-ifs, and a run has 1000 at most"))
        #expect(refusal("seed=1&if=" + String(repeating: "1", count: 17_000)).contains("16384 is the most"))
        var random = RandomStream(seed: 5, stream: 5)
        let letters = Array("seed=1&if=12.kill.2.8000,cut-0%41story=lowest\u{0}é")
        var refused = 0
        for _ in 0..<5000 {
            let words = String((0..<random.below(40)).map { _ in letters[random.below(letters.count)] })
            if (try? Run(words: words)) == nil { refused += 1 }
        }
        #expect(refused > 4000)
    }
}
