// Changes settings while the node is stopped.

import Primitives
import Settings
import TrackerLogic
import Web
import Wire

/// Changes settings while the node is stopped: checked as at the start of the process, all at once, and taken only
/// where all is right.
struct SettingsDesk: SettingsProvider {
    let current: CurrentSettings
    let host: NodeHost

    var settings: SettingsInForce {
        get async { SettingsInForce(current.configuration, revision: current.revision) }
    }

    func change(
        _ wanted: [String: SettingValue], keeps: Bool, expected: Expectation
    ) async -> SettingsOutcome {
        whileStopped(expected) {
            var given: [SettingKey: SettingInput] = [:]
            var problems: [SettingProblem] = []
            for (path, value) in wanted.sorted(by: { $0.key < $1.key }) {
                if let key = SettingKey(rawValue: path), SettingKey.changeable.contains(key) {
                    given[key] = SettingInput(value)
                } else {
                    problems.append(SettingProblem(key: path, message: Self.notHere(path)))
                }
            }
            let path = KeptSettings.path(in: current.configuration.dataDirectory)
            return take(given, problems) { check in
                guard keeps else { return nil }
                let nothing = KeptSettings(path: path, text: "")
                guard let loaded = check(ConsoleSettings(given: given, kept: nothing), false) else { return nothing }
                let kept = KeptSettings(given.keys, of: loaded, path: path)
                // Without the word that goes before flags and environment: as the next start will have it.
                _ = check(ConsoleSettings(kept: kept), true)
                return kept
            }
        }
    }

    func forget(expected: Expectation) async -> SettingsOutcome {
        whileStopped(expected) {
            let nothing = KeptSettings(path: KeptSettings.path(in: current.configuration.dataDirectory), text: "")
            return take([:], []) { _ in nothing }
        }
    }

    private func whileStopped(_ expected: Expectation, _ body: () -> SettingsOutcome) -> SettingsOutcome {
        if let reason = host.beginChange() { return .refused(reason) }
        defer { host.endChange() }
        let revision = current.revision
        guard expected.isMet(by: revision) else { return .outdated(revision) }
        return body()
    }

    /// Checks, keeps and takes; nothing where there is a problem.
    ///
    /// `kept` tells what is to be kept, nil to leave that alone, and may have more checked.
    private func take(
        _ given: [SettingKey: SettingInput], _ problems: [SettingProblem],
        kept: (_ check: (ConsoleSettings, _ isNextStart: Bool) -> ServerConfiguration?) -> KeptSettings?
    ) -> SettingsOutcome {
        var problems = problems
        func check(_ console: ConsoleSettings, _ isNextStart: Bool) -> ServerConfiguration? {
            do {
                let loaded = try current.read(console)
                guard let problem = numberProblem(loaded.node.id, loaded.cluster.members) else { return loaded }
                note(problem, isNextStart, &problems)
            } catch let error as ConfigurationError {
                if let id = console.given[.id].flatMap(UInt32.init),
                    let problem = numberProblem(id, current.configuration.cluster.members)
                {
                    note(problem, isNextStart, &problems)
                }
                for problem in error.problems {
                    guard !isNextStart || problem != console.kept.map({ KeptSettings.advice($0.path) }) else {
                        continue
                    }
                    // What stands in the file that is not written yet has no place in it.
                    let message = isNextStart ? problem.message : problem.description
                    note(SettingProblem(key: problem.key?.path, message: message), isNextStart, &problems)
                }
            } catch {
                note(SettingProblem(key: nil, message: "\(error)"), isNextStart, &problems)
            }
            return nil
        }
        let kept = kept(check)
        let loaded = check(ConsoleSettings(given: given, kept: kept), false)
        guard problems.isEmpty, let loaded else { return .invalid(problems) }
        do throws(TextFileError) {
            try kept?.store()
        } catch {
            return .failed("\(error.description); nothing was changed")
        }
        let configuration = current.configuration.changed(as: loaded)
        let revision = current.take(configuration, given: given)
        return .done(SettingsInForce(configuration, revision: revision))
    }

    private func note(_ problem: SettingProblem, _ isNextStart: Bool, _ problems: inout [SettingProblem]) {
        var problem = problem
        if isNextStart {
            guard !problems.contains(where: { $0.key == problem.key }) else { return }
            problem.message = "at the next start of the process: \(problem.message)"
        }
        if !problems.contains(problem) { problems.append(problem) }
    }

    /// Why the tracker cannot have the number that a configuration gives it.
    ///
    /// A quorum counts on each vote being one record's. A record that has answered under one number and votes under
    /// another one's makes two majorities that have no record in common: what the one has answered, the other forgets.
    private func numberProblem(_ id: UInt32, _ members: [UInt32]) -> SettingProblem? {
        guard let last = host.lastReport?.status, last.mode == .quorum else { return nil }
        let own = last.life.id
        guard id != own, last.voters.contains(id) || members.contains(id) else { return nil }
        return SettingProblem(
            key: SettingKey.id.path,
            message:
                "\(id) is the number of another member, and the record here was written by tracker \(own): to vote "
                + "with it in that one's place could lose what was answered. Start a tracker of that number with an "
                + "empty data directory, or have the members changed: tracker members replace \(id) NUMBER")
    }

    private static func notHere(_ path: String) -> String {
        guard SettingKey(rawValue: path) != nil else {
            return "there is no such setting; GET /api/v1/settings lists them"
        }
        let list = SettingKey.changeable.map(\.path).joined(separator: ", ")
        return
            "it is in force until the process ends: change its flag, variable or file, and start the process again. "
            + "What can be changed here: \(list)"
    }
}

extension UInt32 {
    /// A number as a setting takes it; nil for what the check of the setting refuses.
    fileprivate init?(_ input: SettingInput) {
        switch input {
        case .integer(let number): self.init(exactly: number)
        case .text(let text): self.init(text)
        case .boolean, .list, .other: return nil
        }
    }
}

extension SettingInput {
    fileprivate init(_ value: SettingValue) {
        self =
            switch value {
            case .text(let text): .text(text)
            case .number(let number): .integer(number)
            case .flag(let flag): .boolean(flag)
            case .list(let elements): .list(elements.map { SettingInput($0) })
            case .other(let shown): .other(shown)
            }
    }
}
