// The settings: shown at any time, changed while the tracker is stopped.

import HTTPTypes
import Logging
import Wire

/// Shows the settings, and changes those of the tracker while it is stopped.
public protocol SettingsProvider: Sendable {
    /// As they are in force, or will be at the next start by the console.
    var settings: SettingsInForce { get async }
    /// Takes what the console has to say on settings, in the place of all that it has said before.
    ///
    /// - Parameters:
    ///   - wanted: by their keys; what is not among them is as it was given elsewhere.
    ///   - keeps: whether it is to be so at each start of the process.
    ///   - expected: the revision from which the change was made.
    /// - Returns: what came of it; nothing is taken unless all is right.
    func change(_ wanted: [String: SettingValue], keeps: Bool, expected: Expectation) async -> SettingsOutcome
    /// Forgets what the console has said, and what it has kept.
    func forget(expected: Expectation) async -> SettingsOutcome
}

/// A value as JSON has it.
public indirect enum SettingValue: Sendable, Equatable, Decodable {
    case text(String)
    case number(Int)
    case flag(Bool)
    case list([SettingValue])
    /// Something that no setting takes, as it would be shown.
    case other(String)

    /// Takes whatever JSON has.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        if let text = try? container.decode(String.self) {
            self = .text(text)
        } else if let flag = try? container.decode(Bool.self) {
            self = .flag(flag)
        } else if let number = try? container.decode(Int.self) {
            self = .number(number)
        } else if let number = try? container.decode(Double.self) {
            self = .other("\(number)")
        } else if let list = try? container.decode([SettingValue].self) {
            self = .list(list)
        } else {
            self = .other(container.decodeNil() ? "null" : "an object")
        }
    }
}

/// What came of a change of settings.
public enum SettingsOutcome: Sendable, Equatable {
    /// They are so from the next start of the tracker on.
    case done(SettingsInForce)
    /// The tracker is not stopped; what to do, in a sentence.
    case refused(String)
    /// They have been changed meanwhile; what their revision is now.
    case outdated(UInt64)
    /// All that is wrong.
    case invalid([SettingProblem])
    /// The disk does not take them; why, in a sentence.
    case failed(String)
}

/// What is wrong with a setting.
public struct SettingProblem: Sendable, Equatable, Encodable {
    /// Its path in the file; nil where it is no setting's own.
    public var key: String?
    /// In a sentence, with what would be right.
    public var message: String

    /// Takes the fields as they are.
    public init(key: String?, message: String) {
        self.key = key
        self.message = message
    }
}

extension APIServer {
    private struct SettingsOrder: Decodable {
        var settings: [String: SettingValue]
        var keep: Bool?
    }

    func settingsRoutes(_ provider: any SettingsProvider) -> [APIRoute] {
        [
            .get("/api/v1/settings") { _ in try Self.answer(await provider.settings) },
            APIRoute(.put, "/api/v1/settings", bodyByteCount: APIRoute.jsonByteCount) { request, _ in
                let order = try request.json(SettingsOrder.self)
                let outcome = await provider.change(
                    order.settings, keeps: order.keep ?? false, expected: try Self.expectation(of: request))
                if case .done = outcome {
                    let names = order.settings.keys.sorted().joined(separator: ", ")
                    request.logger.notice(
                        "\(request.caller.name) has changed settings: \(names.isEmpty ? "none is left" : names)")
                }
                return try Self.answer(outcome)
            },
            APIRoute(.delete, "/api/v1/settings", bodyByteCount: APIRoute.jsonByteCount) { request, _ in
                let outcome = await provider.forget(expected: try Self.expectation(of: request))
                if case .done = outcome {
                    request.logger.notice("\(request.caller.name) has had the console's settings forgotten")
                }
                return try Self.answer(outcome)
            },
        ]
    }

    private static func answer(_ settings: SettingsInForce) throws -> Response {
        var response = try Response.json(SettingsDocument(settings))
        response.headers[.eTag] = "\"\(settings.revision)\""
        return response
    }

    private static func answer(_ outcome: SettingsOutcome) throws -> Response {
        switch outcome {
        case .done(let settings): return try answer(settings)
        case .refused(let reason): throw APIError(.conflict, reason)
        case .outdated(let revision):
            throw APIError(
                .preconditionFailed, "the settings have been changed meanwhile: their ETag is \"\(revision)\" now")
        case .invalid(let problems):
            return try .json(SettingProblemsDocument(problems), status: .unprocessableContent)
        case .failed(let reason): throw APIError(.serviceUnavailable, reason)
        }
    }
}

/// A refusal with all that is wrong.
struct SettingProblemsDocument: Encodable {
    var error: String
    var problems: [SettingProblem]

    init(_ problems: [SettingProblem]) {
        let count = problems.count
        error = "nothing was changed: \(count == 1 ? "something is" : "\(count) things are") wrong, see the problems"
        self.problems = problems
    }
}
