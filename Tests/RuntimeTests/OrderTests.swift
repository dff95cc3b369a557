import Bus
import Logging
import Primitives
import Server
import Synchronization
import Testing
import TrackerLogic
import Wire

/// Operators' orders from one tracker to another: whatever is lost or repeated, each is carried out once.
@Suite("Orders")
struct OrderTests {
    private static let asker = Life(id: 1, incarnation: 0xA)
    private static let master = Life(id: 3, incarnation: 0xC)

    /// A wire to a relay, which loses the first messages.
    private final class Wire: Bus {
        private let lostCount: Int
        private let heard = Mutex<[ClusterMessage]>([])
        private let deliver = Mutex<(@Sendable (ClusterMessage) -> Void)?>(nil)

        init(losing count: Int = 0) { lostCount = count }

        /// What was sent, lost or not.
        var sent: [ClusterMessage] { heard.withLock { $0 } }

        func connect(_ deliver: @escaping @Sendable (ClusterMessage) -> Void) { self.deliver.withLock { $0 = deliver } }

        func send(_ messages: [BusMessage]) {
            for bytes in messages.map(\.bytes) {
                guard let message = try? ClusterMessage(bytes) else {
                    Issue.record("what is sent is no message")
                    return
                }
                let isLost = heard.withLock { heard in
                    heard.append(message)
                    return heard.count <= lostCount
                }
                if !isLost { deliver.withLock { $0 }?(message) }
            }
        }

        func start(inbox: any BusInbox) {}
        func stop() async {}
        var status: BusStatus { BusStatus(endpoint: "wire") }
    }

    /// What a master does with orders, counted.
    private final class Executor: Sendable {
        private let done = Mutex<[ClusterOrder]>([])
        private let gate = Mutex<[CheckedContinuation<Void, Never>]>([])
        private let isHeld: Bool

        /// - Parameter isHeld: whether orders take until they are let go.
        init(isHeld: Bool = false) { self.isHeld = isHeld }

        var carriedOut: [ClusterOrder] { done.withLock { $0 } }
        var heldCount: Int { gate.withLock { $0.count } }

        func carryOut(_ order: ClusterOrder) async -> OrderOutcome {
            done.withLock { $0.append(order) }
            if isHeld { await withCheckedContinuation { waiter in gate.withLock { $0.append(waiter) } } }
            return .members([1, 2, 3, 4])
        }

        func release() {
            let waiters = gate.withLock { waiters in
                defer { waiters = [] }
                return waiters
            }
            for waiter in waiters { waiter.resume() }
        }
    }

    private static func patience() -> OrderRelay.Timeouts {
        var patience = OrderRelay.Timeouts()
        (patience.pause, patience.most) = (.milliseconds(2), Waiting.most)
        return patience
    }

    /// A master's relay, which takes orders from a wire.
    private static func serve(_ executor: Executor, from toMaster: Wire, answering toAsker: Wire) -> OrderRelay {
        let relay = OrderRelay(bus: toAsker, logger: quiet)
        toMaster.connect { message in
            guard case .order(let number, let order) = message.body else { return }
            relay.received(number, order, of: message.sender, own: master) { await executor.carryOut($0) }
        }
        return relay
    }

    private static func asks(_ relay: OrderRelay, hearing toAsker: Wire) {
        toAsker.connect { message in
            if case .ordered(let number, let outcome) = message.body { relay.settle(number, outcome) }
        }
    }

    @Test
    func `an order that comes twice is carried out once, and answered each time`() async throws {
        let (toMaster, toAsker) = (Wire(), Wire())
        let executor = Executor(isHeld: true)
        let relay = Self.serve(executor, from: toMaster, answering: toAsker)
        func come() {
            relay.received(7, .addMember(4), of: Self.asker, own: Self.master) { await executor.carryOut($0) }
        }
        come()
        try await eventually { executor.heldCount == 1 }
        // While it is under way nothing is said, and nothing done again.
        for _ in 0..<5 { come() }
        #expect(toAsker.sent.isEmpty)
        executor.release()
        try await eventually { toAsker.sent.count == 1 }
        come()
        #expect(toAsker.sent.map(\.body) == Array(repeating: .ordered(number: 7, .members([1, 2, 3, 4])), count: 2))
        #expect(toAsker.sent.allSatisfy { $0.destination == .one(Self.asker) && $0.sender == Self.master })
        #expect(executor.carriedOut == [.addMember(4)])
    }

    @Test
    func `lost orders and lost answers are made good, and nothing is carried out a second time`() async throws {
        let (toMaster, toAsker) = (Wire(losing: 2), Wire(losing: 2))
        let executor = Executor()
        let server = Self.serve(executor, from: toMaster, answering: toAsker)
        let asker = OrderRelay(bus: toMaster, logger: quiet, patience: Self.patience())
        Self.asks(asker, hearing: toAsker)
        let outcome = await asker.ask(Self.master, for: .removeMember(4), as: Self.asker)
        #expect(outcome == .members([1, 2, 3, 4]))
        #expect(executor.carriedOut == [.removeMember(4)])
        #expect(toMaster.sent.count >= 5 && toAsker.sent.count >= 3)
        // The next one is another one, though it says the same.
        _ = await asker.ask(Self.master, for: .removeMember(4), as: Self.asker)
        #expect(executor.carriedOut == [.removeMember(4), .removeMember(4)])
        server.close()
    }

    // MARK: - What is remembered

    private static let start = Instant(nanoseconds: 1_000_000_000)

    @Test
    func `however many orders a member sends, none of them is new a second time`() {
        var memory = OrderMemory()
        var fresh: [UInt64: Int] = [:]
        // Each comes three times: at once, after ten others, and when a thousand have come.
        let numbers = Array(1...1_000 as ClosedRange<UInt64>)
        func come(_ number: UInt64) {
            guard memory.came(number, of: 9, at: Self.start) == .isNew else { return }
            fresh[number, default: 0] += 1
            memory.settled(number, of: 9, .stopping)
        }
        for number in numbers {
            come(number)
            come(number)
            if number > 10 { come(number - 10) }
        }
        for number in numbers { come(number) }
        #expect(fresh.count == 1_000 && fresh.values.allSatisfy { $0 == 1 })
        // What was answered lately is answered again, what is long gone is not.
        #expect(memory.came(1_000, of: 9, at: Self.start) == .isSettled(.stopping))
        #expect(memory.came(1, of: 9, at: Self.start) == .isPassedOver)
        // One that has overtaken so many others comes too late for good.
        var other = OrderMemory()
        for number in 2...40 as ClosedRange<UInt64> {
            #expect(other.came(number, of: 9, at: Self.start) == .isNew)
            other.settled(number, of: 9, .handedOver)
        }
        #expect(other.came(1, of: 9, at: Self.start) == .isPassedOver)
        #expect(other.came(0, of: 9, at: Self.start) == .isPassedOver)
        #expect(other.came(.max, of: 9, at: Self.start) == .isNew)
    }

    @Test
    func `those under way are bounded, never forgotten, and beyond the bound the sender is told`() {
        var memory = OrderMemory()
        for number in 1...UInt64(OrderMemory.Limits.underWay) {
            #expect(memory.came(number, of: number % 3, at: Self.start) == .isNew)
        }
        #expect(memory.came(90, of: 1, at: Self.start) == .isSettled(.busy))
        // A flood behind them pushes none of them out.
        for number in 100...400 as ClosedRange<UInt64> {
            #expect(memory.came(number, of: 1, at: Self.start) == .isSettled(.busy))
        }
        #expect(memory.came(1, of: 1, at: Self.start) == .isUnderWay)
        memory.settled(1, of: 1, .isMaster)
        #expect(memory.came(1, of: 1, at: Self.start) == .isSettled(.isMaster))
        // There is room again, and who was told that the master is busy has that answer for good.
        #expect(memory.came(401, of: 1, at: Self.start) == .isNew)
        #expect(memory.came(400, of: 1, at: Self.start) == .isSettled(.busy))
    }

    @Test
    func `lives are bounded, and one makes room only when it has been silent for long and has nothing under way`() {
        var memory = OrderMemory()
        let count = UInt64(OrderMemory.Limits.lives)
        for life in 1...count {
            #expect(memory.came(1, of: life, at: Self.start) == (life <= 16 ? .isNew : .isSettled(.busy)))
        }
        let soon = Self.start + .seconds(59)
        #expect(memory.came(1, of: count + 1, at: soon) == .isPassedOver)
        #expect(memory.came(1, of: 17, at: soon) == .isSettled(.busy))
        let later = Self.start + .seconds(61)
        #expect(memory.came(1, of: count + 1, at: later) == .isSettled(.busy))
        // Life 18 went, for it was silent for longest of those that have nothing under way.
        #expect(memory.came(1, of: 17, at: later) == .isSettled(.busy))
        for life in 1...16 as ClosedRange<UInt64> { #expect(memory.came(1, of: life, at: later) == .isUnderWay) }
    }
}
