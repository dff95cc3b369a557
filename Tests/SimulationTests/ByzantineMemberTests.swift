// A member that lies: nobody who listens to it traps, whatever it says, nor when it reads back what that has left on
// its disk. A trap ends the test process, so these tests fail by their not ending.

import Primitives
import Simulator
import Testing
import TrackerLogic

@Suite("Lying members", .computes)
struct ByzantineMemberTests {
    @Test(arguments: Profile.clusters)
    func `no lie traps whoever hears it, or reads it back`(_ profile: Profile) {
        var total = ByzantineCluster.Tally()
        for seed: UInt64 in 0..<100 {
            var cluster = ByzantineCluster(seed: seed, profile: profile)
            cluster.run(.seconds(60))
            total.lies += cluster.tally.lies
            total.elections += cluster.tally.elections
            total.entries += cluster.tally.entries
            total.transfers += cluster.tally.transfers
        }
        // Lies that never get anywhere prove nothing.
        #expect(total.lies > 5000)
        #expect(total.elections > 200)
        #expect(total.entries > 10_000)
        #expect(total.transfers > 100)
    }

    /// One word with the greatest round that there is must not be the last election.
    @Test(arguments: Profile.clusters)
    func `those who are left go on after any lie about epochs`(_ profile: Profile) {
        for seed: UInt64 in 0..<40 {
            var cluster = ByzantineCluster(seed: seed, profile: profile, liesAboutEpochs: true)
            cluster.run(.seconds(30))
            #expect(cluster.tally.lies > 0)
            cluster.silenceByzantine()
            cluster.run(.seconds(20))
            let before = cluster.tally.entries
            cluster.run(.seconds(20))
            #expect(cluster.tally.entries > before, "seed \(seed): nothing is decided after the liar is gone")
        }
    }
}
