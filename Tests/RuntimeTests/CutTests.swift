// Cutting a tracker off on purpose.

import Bus
import Primitives
import Server
import Synchronization
import Testing
import Web
import Wire

@Suite("Console: cuts")
struct CutTests {
    @Test func `a cut ends by itself, and is told when it begins and when it ends`() async throws {
        let cuts = Cuts(hasBus: true)
        let told = Seen<String>()
        cuts.onChange { told.add("\($0.id) \($1)") }
        #expect(cuts.cut(.peers, for: .milliseconds(150)))
        #expect(cuts.isCutFromPeers)
        #expect(cuts.faults.map(\.target) == [.peers])
        try await eventually("it is over") { !cuts.isCutFromPeers && cuts.faults.isEmpty && told.all.count == 2 }
        #expect(told.all == ["peers true", "peers false"])
    }

    @Test func `a longer cut takes the place of a shorter one, and mending ends it at once`() async throws {
        let cuts = Cuts(hasBus: true)
        let told = Seen<String>()
        cuts.onChange { told.add("\($0.id) \($1)") }
        #expect(cuts.cut(.bus, for: .milliseconds(50)))
        #expect(cuts.cut(.bus, for: .seconds(600)))
        try await Task.sleep(for: .milliseconds(200))
        #expect(cuts.isCutFromBus)
        #expect(cuts.mend(.bus))
        #expect(!cuts.isCutFromBus)
        #expect(!cuts.mend(.bus))
        #expect(told.all == ["bus true", "bus false"])
    }

    @Test func `there is a bound, and a tracker that is alone has no bus to be cut off from`() {
        let cuts = Cuts(hasBus: true)
        for id in 1...16 { #expect(cuts.cut(.tracker(UInt32(id)), for: .seconds(600))) }
        #expect(!cuts.cut(.tracker(17), for: .seconds(600)))
        // One that is in force may be given another end.
        #expect(cuts.cut(.tracker(16), for: .seconds(900)))
        #expect(cuts.trackers == (1...16).map { UInt32($0) })
        #expect(cuts.mend(nil))
        #expect(cuts.trackers.isEmpty)
        let alone = Cuts(hasBus: false)
        #expect(!alone.cut(.bus, for: .seconds(1)))
        #expect(!alone.cut(.tracker(1), for: .seconds(1)))
        #expect(alone.cut(.peers, for: .seconds(1)))
    }

    // MARK: - The bus

    /// What is handed to it is kept; what comes is said by the test.
    private final class FakeBus: Bus {
        private let state = Mutex<(inbox: (any BusInbox)?, sent: [BusMessage])>((nil, []))

        func start(inbox: any BusInbox) { state.withLock { $0.inbox = inbox } }
        func send(_ messages: [BusMessage]) { state.withLock { $0.sent += messages } }
        func stop() async {}
        var status: BusStatus {
            var status = BusStatus(endpoint: "fake")
            status.isConnected = true
            return status
        }
        var inbox: any BusInbox { state.withLock { $0.inbox }! }
        func takeSent() -> [BusMessage] {
            state.withLock { state in
                defer { state.sent = [] }
                return state.sent
            }
        }
    }

    private final class Inbox: BusInbox {
        let events = Seen<String>()
        func busReceived(_ messages: [[UInt8]]) { for bytes in messages { events.add("message \(bytes.last ?? 0)") } }
        func busConnected() { events.add("connected") }
        func busLost(reason: String) { events.add("lost") }
    }

    private func message(of life: Life, _ body: ClusterMessage.Body = .leave) -> [UInt8] {
        var bytes: [UInt8] = []
        ClusterMessage(sender: life, destination: .all, epoch: .zero, body: body).encode(into: &bytes)
        return bytes
    }

    @Test func `cut off from the bus, the node hears that it is lost, nothing more, and then that it works`() {
        let (cuts, real, inbox) = (Cuts(hasBus: true), FakeBus(), Inbox())
        let bus = CutBus(real, cuts: cuts)
        cuts.onChange { target, begins in if target == .bus { bus.cutChanged(begins: begins) } }
        bus.start(inbox: inbox)
        real.inbox.busConnected()
        #expect(cuts.cut(.bus, for: .seconds(600)))
        #expect(!bus.status.isConnected)
        real.inbox.busReceived([message(of: Life(id: 2, incarnation: 2))])
        bus.send([BusMessage(destination: nil, bytes: [1])])
        #expect(real.takeSent().isEmpty)
        // What becomes of the real bus meanwhile shows when the cut ends.
        real.inbox.busLost(reason: "really")
        real.inbox.busConnected()
        #expect(cuts.mend(.bus))
        #expect(inbox.events.all == ["connected", "lost", "connected"])
        #expect(bus.status.isConnected)
        bus.send([BusMessage(destination: nil, bytes: [2])])
        #expect(real.takeSent() == [BusMessage(destination: nil, bytes: [2])])
    }

    @Test func `a bus that is lost when the cut ends stays lost`() {
        let (cuts, real, inbox) = (Cuts(hasBus: true), FakeBus(), Inbox())
        let bus = CutBus(real, cuts: cuts)
        cuts.onChange { _, begins in bus.cutChanged(begins: begins) }
        bus.start(inbox: inbox)
        real.inbox.busConnected()
        #expect(cuts.cut(.bus, for: .seconds(600)))
        real.inbox.busLost(reason: "really")
        #expect(cuts.mend(.bus))
        #expect(inbox.events.all == ["connected", "lost"])
        real.inbox.busConnected()
        #expect(inbox.events.all.last == "connected")
    }

    @Test func `cut off from one tracker, it is neither heard nor told, and all others are`() {
        let (cuts, real, inbox) = (Cuts(hasBus: true), FakeBus(), Inbox())
        let bus = CutBus(real, cuts: cuts)
        bus.start(inbox: inbox)
        real.inbox.busConnected()
        let (two, three) = (Life(id: 2, incarnation: 20), Life(id: 3, incarnation: 30))
        real.inbox.busReceived([message(of: two), message(of: three)])
        #expect(inbox.events.all.count == 3)
        #expect(cuts.cut(.tracker(2), for: .seconds(600)))
        real.inbox.busReceived([message(of: two), message(of: three)])
        #expect(inbox.events.all.count == 4)
        bus.send([
            BusMessage(destination: nil, bytes: [1]), BusMessage(destination: two, bytes: [2]),
            BusMessage(destination: three, bytes: [3]),
        ])
        #expect(
            real.takeSent() == [
                BusMessage(destination: three, bytes: [1]), BusMessage(destination: three, bytes: [3]),
            ])
        // A new life of the tracker is the tracker still.
        real.inbox.busReceived([message(of: Life(id: 2, incarnation: 21))])
        #expect(inbox.events.all.count == 4)
        #expect(cuts.mend(.tracker(2)))
        bus.send([BusMessage(destination: nil, bytes: [4])])
        #expect(real.takeSent() == [BusMessage(destination: nil, bytes: [4])])
        real.inbox.busReceived([[1, 2, 3]])
        #expect(inbox.events.all.last == "message 3")
    }
}
