// Something that is wrong with a tracker or its cluster.

/// Something that is wrong with a tracker or its cluster, in words, as the API tells it.
public struct Finding: Sendable, Equatable {
    /// For programs; a promise, like the keys of the API.
    public enum Code: String, Sendable, Hashable, CaseIterable {
        case starting
        case stopping
        case diskBroken
        case diskFails
        case busLost
        case otherKey
        case otherCluster
        case otherVersion
        case refused
        case otherMembers
        case otherSettings
        case waitsForMembers
        case noMajority
        case fetchesState
        case election
        case kernelDrops
    }

    /// For programs.
    public var code: Code
    /// Whether it is why nobody is answered here.
    public var isSilence: Bool
    /// What is the matter, as anybody may hear it.
    public var words: String
    /// What only those who run the cluster are to hear, such as addresses; empty where there is nothing.
    public var detail: String

    /// Takes the fields as they are.
    public init(_ code: Code, isSilence: Bool, _ words: String, detail: String = "") {
        self.code = code
        self.isSilence = isSilence
        self.words = words
        self.detail = detail
    }

    /// All of it.
    public var text: String { detail.isEmpty ? words : "\(words) (\(detail))" }

    /// Why nobody is answered, as anybody may hear it, without addresses: what `/healthz` and HTTP clients are told.
    ///
    /// Nil where clients are answered.
    public static func problem(_ findings: [Finding]) -> String? { findings.first { $0.isSilence }?.words }
}
