// Random people at random runs: the promises hold, and what is done again is the same again.

import Primitives
import Simulator
import Testing

@Suite("Sweep of what-ifs", .computes)
struct WhatIfSweepTests {
    /// Does things to a run at random steps, with what is under way there.
    private struct Person {
        var random: RandomStream
        var play: Play
        var list: [WhatIf] = []
        /// Where something is done next.
        var step: Int

        init(_ run: Run, seed: UInt64) {
            random = RandomStream(seed: seed, stream: 77)
            play = Play(run)
            step = random.below(max(1, play.steps))
        }

        private var underWay: [PendingEvent] {
            mutating get {
                play.pending(after: step).filter { [.message, .datagram, .reply].contains($0.kind) }
            }
        }

        private mutating func add(_ action: WhatIf.Action) {
            list.append(WhatIf(after: step, action))
            var run = play.run
            run.whatIfs = list
            play = Play(run, sharing: play)
        }

        private mutating func action() -> WhatIf.Action {
            let nodes = play.result.names.short.count
            let node = random.below(nodes)
            let milliseconds = 1 + random.below(random.oneIn(3) ? 20_000 : 3000)
            let messages = underWay
            let id = messages.isEmpty ? UInt64(1 + random.below(9999)) : messages[random.below(messages.count)].id
            return switch random.below(15) {
            case 0, 1, 2: .drop(id)
            case 3, 4: .delay(id, milliseconds: milliseconds)
            case 5, 6: .kill(node, milliseconds: random.oneIn(4) ? 0 : milliseconds)
            case 7: .pause(node, milliseconds: milliseconds)
            case 8, 9: .cut(node == 0 || nodes < 3 ? [node] : [0, node], milliseconds: milliseconds)
            case 10: .fence(node, milliseconds: milliseconds)
            case 11: .disk(node, milliseconds: milliseconds)
            case 12: .wake(node)
            case 13: .hand(node, id: UInt32(1 + random.below(nodes)))
            default: .net
            }
        }

        /// Is the network for a while.
        private mutating func choose() {
            for _ in 0..<(2 + random.below(40)) where play.result.waitsForPlayer {
                step = play.steps
                let messages = underWay
                if messages.isEmpty || random.oneIn(3) {
                    add(.time)
                } else {
                    let id = messages[random.below(messages.count)].id
                    add(random.oneIn(8) ? .drop(id) : .take(id))
                }
            }
            step = play.steps
            if play.result.waitsForPlayer { add(.auto) }
        }

        mutating func act(_ count: Int) {
            for _ in 0..<count where play.result.violations.isEmpty {
                add(action())
                if play.result.waitsForPlayer { choose() }
                step += 1 + (random.oneIn(3) ? random.below(20) : random.below(max(1, play.steps - step)))
            }
        }
    }

    @Test(arguments: 0..<8)
    func `whatever a person does, no promise is broken, and the same again gives the same`(_ part: Int) {
        var (done, unmet) = (0, 0)
        for number in 0..<(Sweep.count / 160) {
            let seed = UInt64(part * 100_000 + number)
            let stress = number % 2 == 0 ? nil : Stress.allCases[number / 2 % Stress.allCases.count]
            let profile = Profile.allCases[number % Profile.allCases.count]
            var person = Person(Run(seed: seed, profile: profile, stress: stress), seed: seed)
            person.act(1 + number % 8)
            let run = person.play.run
            let result = run.scenario.run()
            #expect(result.traceHash == person.play.result.traceHash, "\(run.command)")
            #expect(!result.waitsForPlayer)
            done += run.whatIfs.count
            unmet += result.unmetWhatIfs.count
            for violation in result.violations { Issue.record("\(violation)\n\(run.command)") }
            #expect((try? Run(words: run.words)) == run)
        }
        #expect(done > Sweep.count / 160 && unmet * 3 < done)
    }
}
