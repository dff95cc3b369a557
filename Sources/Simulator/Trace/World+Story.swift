// A simulated cluster at one moment, told to people: the state of a tracker, and why all is not well.

import Primitives
import TrackerLogic
import Wire

extension World {
    /// Promises of the end, and of progress: what breaks them is not one step, but the state of the world.
    private static let ends: [Invariant] = [.healedIsAnswered, .healedIsOne, .timeGoesOn]

    /// How people call whoever has an address.
    func person(_ address: SocketAddress) -> String {
        let place = AddressPlan.place(of: address)
        return clients.indices.contains(place) ? "client \(place)" : "a stranger"
    }

    /// What the machinery around a tracker says of it; nil where all is well.
    private func trouble(of node: Int) -> String? {
        func told(_ kinds: [LinkFault.Kind], _ what: String) -> String {
            guard let trouble = troubles.find(kinds, of: node) else { return what }
            return "\(what) since \(Figure.seconds(trouble.beganAt)) s, \(trouble.cause)"
        }
        if !nodes[node].isUp { return told([.down], "is down") }
        if nodes[node].heldUntil > now { return told([.held], "is held") }
        if hasBus, !connectivity[node].isOnBus {
            return troubles.find([.noBus], of: node) == nil ? "is not on its bus yet" : told([.noBus], "has no bus")
        }
        return nil
    }

    /// The state of a tracker, line by line.
    mutating func tell(of node: Int) -> [String] {
        let title = "\(trace.names[node]) at \(Figure.seconds(now)) s"
        let lines = items(of: node)
        let width = lines.map { $0.title.count }.max() ?? 0
        return [title]
            + lines.map { "  \($0.title)\(String(repeating: " ", count: width - $0.title.count))  \($0.text)" }
    }

    /// The state of a tracker, each line with its title.
    mutating func items(of node: Int) -> [(title: String, text: String)] {
        var lines: [(title: String, text: String)] = []
        if let trouble = trouble(of: node) { lines.append(("trouble", trouble)) }
        for trouble in troubles.all where trouble.trackers >> UInt32(node) & 1 == 1 && trouble.kind != .down {
            lines.append(("fault", "\(trouble.cause), since \(Figure.seconds(trouble.beganAt)) s: \(trouble.text)"))
        }
        let people = self
        if let account = nodes[node].account(at: now, client: { people.person($0) }) {
            lines += account.items.map { ($0.title, $0.text) }
        } else {
            let record = nodes[node].disk.record
            lines.append(("promise", record.promise.map { "epoch \($0.epoch), on its disk" } ?? "none on its disk"))
        }
        lines.append(("disk", nodes[node].disk.words))
        return lines
    }

    /// Says of each tracker and each client that waits why all is not well.
    mutating func explain() {
        guard allViolations.contains(where: { World.ends.contains($0.invariant) }) else { return }
        if allViolations.contains(where: { $0.invariant == .timeGoesOn }) { explainHaste() }
        let people = self
        for node in nodes.indices {
            let name = trace.names[node]
            if let trouble = trouble(of: node) {
                reasons.append("\(name) \(trouble)")
                continue
            }
            guard let account = nodes[node].account(at: now, client: { people.person($0) }) else { continue }
            if account.obstacles.isEmpty {
                let titles = ["role", "number", "log", "transfer", "waits for"]
                let told = account.items.filter { titles.contains($0.title) }
                let text = told.map { $0.title == "role" ? $0.text : "\($0.title) \($0.text)" }
                reasons.append("\(name) serves: \(text.joined(separator: "; "))")
            } else {
                reasons.append("\(name) \(account.obstacles.joined(separator: "; "))")
            }
        }
        for place in clients.indices {
            guard let askedAt = clients[place].askedAt, now - askedAt > World.answerBound else { continue }
            reasons.append(
                "client \(place) has asked since \(Figure.seconds(askedAt)) s, now at \(home(of: place)): "
                    + waitInWords(place))
        }
    }

    /// Who has the request of a client.
    private mutating func waitInWords(_ place: Int) -> String {
        let people = self
        var known: [String] = []
        for node in nodes.indices {
            guard let account = nodes[node].account(at: now, client: { people.person($0) }) else { continue }
            let own = account.items.filter { $0.title == "book" && $0.text.hasPart(" of client \(place),") }
            known += own.map { "\(trace.names[node]) has \($0.text)" }
        }
        return known.isEmpty ? "no tracker knows of it" : known.joined(separator: "; ")
    }

    /// Events without end at one time: who takes all the steps.
    private mutating func explainHaste() {
        let last = trace.lines.suffix(1000).filter { !$0.kinds.isEmpty }
        guard let line = last.last else { return }
        let own = last.count { $0.trackers == line.trackers }
        reasons.append("of the last \(last.count) lines of the trace, \(own) are like the last: \(line.text)")
    }
}
