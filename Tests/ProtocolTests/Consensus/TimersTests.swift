// The timers that are nobody's but the node's.

import Primitives
import Testing
import TrackerLogic

@Suite struct TimersTests {
    private var timers = Timers()

    @Test func `without a bus nothing is said again, and nothing is late`() {
        var timers = timers
        #expect(timers.retryAt == nil)
        #expect(timers.takeRetry(now: .at(5000), pause: .milliseconds(250)) == false)
        #expect(timers.retryAt == nil)
        #expect(timers.lateness(now: .at(5000)) == .zero)
    }

    @Test mutating func `when the bus is there, everything is due at once`() {
        timers.begin(now: .at(100))
        #expect(timers.retryAt == .at(100))
        #expect(timers.keepaliveAt == .at(100))
    }

    @Test mutating func `when the bus is lost, nothing is due, and keepalives are where they were`() {
        timers.begin(now: .at(100))
        timers.end()
        #expect(timers.retryAt == nil)
        #expect(timers.keepaliveAt == .at(100))
    }

    @Test(arguments: [(99, false, 100), (100, true, 350), (101, true, 351)] as [(Int64, Bool, Int64)])
    func `a retry is due at its time, and the next one a pause after now`(_ now: Int64, _ isDue: Bool, _ next: Int64) {
        var timers = timers
        timers.begin(now: .at(100))
        #expect(timers.takeRetry(now: .at(now), pause: .milliseconds(250)) == isDue)
        #expect(timers.retryAt == .at(next))
        #expect(timers.keepaliveAt == .at(100))
    }

    @Test(arguments: [(99, false, 100), (100, true, 1100), (101, true, 1101)] as [(Int64, Bool, Int64)])
    func `a keepalive is due at its time, and the next an interval after now`(
        _ now: Int64, _ isDue: Bool, _ next: Int64
    ) {
        var timers = timers
        timers.begin(now: .at(100))
        #expect(timers.takeKeepalive(now: .at(now), interval: .seconds(1)) == isDue)
        #expect(timers.keepaliveAt == .at(next))
        #expect(timers.retryAt == .at(100))
    }

    @Test(arguments: [(99, -1), (100, 0), (130, 30)] as [(Int64, Int64)])
    func `a process is late by what has gone by since its retry was due`(_ now: Int64, _ late: Int64) {
        var timers = timers
        timers.begin(now: .at(100))
        #expect(timers.lateness(now: .at(now)) == .milliseconds(late))
    }

    @Test mutating func `whatever is said to all puts the keepalive off`() {
        timers.begin(now: .at(100))
        timers.postponeKeepalive(now: .at(150), interval: .seconds(1))
        #expect(timers.keepaliveAt == .at(1150))
        #expect(timers.takeKeepalive(now: .at(1149), interval: .seconds(1)) == false)
        timers.postponeKeepalive(now: .at(120), interval: .milliseconds(1))
        #expect(timers.keepaliveAt == .at(121), "it counts from the last that was said")
    }

    @Test(arguments: [(99, 99), (100, 100), (101, 100)] as [(Int64, Int64)])
    func `a keepalive in a hurry is due now, unless it was due before`(_ now: Int64, _ due: Int64) {
        var timers = timers
        timers.begin(now: .at(100))
        timers.hurryKeepalive(now: .at(now))
        #expect(timers.keepaliveAt == .at(due))
        #expect(timers.retryAt == .at(100))
    }
}
