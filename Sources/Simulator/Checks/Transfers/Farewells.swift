// What trackers are told when a session ends.

import PeerLogic
import Primitives
import Wire

/// What one peer's trackers are told when its session ends (docs/peer.md).
///
/// `stopped`, all that know it, and nobody else; one of them first `completed`, where none has taken it, and `stopped`
/// when it has answered. After 1.5 seconds, where one is silent, up to three others, those of its tier first: one of
/// them `completed`, where none has taken it. Nothing more when all have answered, or one of the others has and none of
/// them, nor any that has taken `completed`, has still to take `stopped`; nor after five seconds.
struct Farewells: Sendable {
    private static let patience = Duration.milliseconds(1_500)
    private static let most = Duration.seconds(5)
    private static let maxSubstituteCount = 3
    private static let lateness = Duration.milliseconds(200)

    /// What one tracker is told.
    private struct Told: Sendable {
        let tier: Int
        let knewUs: Bool
        /// It may be asked: it has not failed, as far as anybody can tell.
        let mayBeAsked: Bool
        var isAsked = false
        var isAskedInStep = false
        var isSubstitute = false
        /// When it was asked, none had taken `completed`.
        var mayComplete = false
        /// Its last word; nil where a connection id is to be had first.
        var said: AnnounceEvent?
        var wasToldCompleted = false
        var hasAnsweredCompleted = false
        /// It has answered its last word.
        var hasAnswered = false
        /// It has answered `completed`, and waits for `stopped`.
        var awaitsStopped = false

        var isSilent: Bool { isAsked && !hasAnswered }
    }

    private let began: Instant
    private var told: [Told]
    private var hasSubstitutes = false
    /// Somebody failed before anybody knew what it was to be told.
    private var isUncertain = false
    private(set) var isOver = false
    /// Enough has been answered, and nobody can tell what one that has not given a connection id is to be told.
    private var mayBeOver = false
    private var isTouched = true
    /// One has answered what may have been `stopped`, in this step.
    private var hasHeard = false

    /// `trackers` tells of each its tier, whether it knows the peer, and whether it may be asked.
    init(began: Instant, _ trackers: [(tier: Int, knewUs: Bool, mayBeAsked: Bool)]) {
        self.began = began
        told = trackers.map { Told(tier: $0.tier, knewUs: $0.knewUs, mayBeAsked: $0.mayBeAsked) }
        isOver = !told.contains { $0.knewUs }
    }

    private func hasEnded(_ local: Instant) -> Bool { local - began >= Self.most }

    // MARK: - Asked

    /// - Returns: what is wrong with that; nil for nothing.
    mutating func asks(_ number: Int, _ local: Instant, owesCompleted: Bool) -> String? {
        isTouched = true
        let before = told[number]
        told[number].isAsked = true
        told[number].isAskedInStep = true
        told[number].mayComplete = owesCompleted
        told[number].said = nil
        told[number].hasAnswered = false
        told[number].awaitsStopped = false
        if isOver { return "asks tracker \(number) when all is said" }
        if !before.isAsked {
            told[number].isSubstitute = local > began
            if local == began {
                return before.knewUs ? nil : "tells tracker \(number) of the end, which does not know it"
            }
            if local - began < Self.patience { return "tells tracker \(number) of the end, and nobody is silent yet" }
            let isNear = told.contains { $0.isSilent && $0.tier == before.tier && !$0.isSubstitute }
            let nearer = told.indices.first { other in
                !told[other].isAsked
                    && told.contains { $0.isSilent && $0.tier == told[other].tier && !$0.isSubstitute }
            }
            if !isNear, let nearer {
                return "tells tracker \(number) of the end, before tracker \(nearer) of the tier of a silent one"
            }
            return nil
        }
        // Of what has failed nobody can tell whether it was to be told `completed`.
        if before.awaitsStopped || isUncertain { return nil }
        return "tells tracker \(number) of the end again"
    }

    mutating func says(_ number: Int, _ event: AnnounceEvent) -> String? {
        told[number].said = event
        switch event {
        case .stopped: return nil
        case .completed:
            told[number].wasToldCompleted = true
            if !told[number].mayComplete { return "tells tracker \(number) at the end that it has completed" }
            let isSubstitute = told[number].isSubstitute
            let others = told.indices.filter {
                $0 != number && told[$0].said == .completed && !told[$0].hasAnswered
                    && told[$0].isSubstitute == isSubstitute
            }
            return others.first.map { "tells trackers \($0) and \(number) at once that it has completed" }
        case .none, .started: return "tells tracker \(number) at the end neither that it has completed, nor stopped"
        }
    }

    /// - Returns: whether it has taken `completed`.
    mutating func answered(_ number: Int, isGood: Bool) -> Bool {
        guard !isOver, told[number].isSilent else { return false }
        isTouched = true
        told[number].hasAnswered = true
        let said = told[number].said
        if said == nil { isUncertain = true }
        told[number].awaitsStopped = said == .completed
        if said == .completed { told[number].hasAnsweredCompleted = true }
        hasHeard = hasHeard || said != .completed
        return isGood && said == .completed
    }

    // MARK: - The end of a step

    /// - Returns: what is wrong; nil for nothing.
    mutating func stepEnds(_ local: Instant, owesCompleted: Bool, isDeadline: Bool) -> String? {
        guard isTouched || isDeadline, !isOver else { return nil }
        isTouched = false
        defer {
            hasHeard = false
            for number in told.indices { told[number].isAskedInStep = false }
        }
        if isDeadline, hasEnded(local) {
            isOver = true
            return nil
        }
        // What comes when it may be over says nothing.
        if !mayBeOver, let number = told.firstIndex(where: { $0.awaitsStopped }) {
            return "does not tell tracker \(number), which has answered that it has completed, that it has stopped"
        }
        if local == began {
            if let number = told.firstIndex(where: { $0.knewUs && !$0.isAsked }) {
                return "does not tell tracker \(number) of the end"
            }
            if let fault = lacksCompleted(owesCompleted) { return fault }
        }
        if isDeadline, local - began >= Self.patience, !hasSubstitutes {
            hasSubstitutes = true
            // Those that are silent now are replaced, whatever they have answered before.
            for number in told.indices { told[number].hasAnsweredCompleted = false }
            let before = told.filter { !$0.isSubstitute && $0.isAsked }.count
            let wanted = min(Self.maxSubstituteCount, told.count - before)
            let count = told.count { $0.isSubstitute }
            if count != wanted { return "tells \(count) trackers in the place of silent ones, and not \(wanted)" }
            if let fault = lacksCompleted(owesCompleted) { return fault }
        }
        guard hasHeard else { return nil }
        let isAnybodySilent = told.contains { $0.isSilent }
        let isEnough =
            told.contains { $0.isSubstitute && $0.hasAnswered }
            && !told.contains { $0.isSilent && $0.wasToldCompleted && ($0.isSubstitute || $0.hasAnsweredCompleted) }
        mayBeOver = isEnough && told.contains { $0.isSilent && $0.said == nil }
        isOver = !isAnybodySilent || isEnough && !mayBeOver
        return nil
    }

    /// Whether a session that says so much of itself is right.
    func isRight(_ isStopped: Bool) -> Bool { isUncertain || mayBeOver || isOver == isStopped }

    /// Whether none of those that are told now is told `completed`, and one should be.
    private func lacksCompleted(_ owesCompleted: Bool) -> String? {
        let now = told.filter { $0.isAskedInStep }
        guard owesCompleted, !isUncertain, now.allSatisfy({ $0.said != nil }), now.contains(where: { $0.mayBeAsked }),
            !now.contains(where: { $0.said == .completed })
        else { return nil }
        return "tells no tracker at the end that it has completed"
    }

    /// The others have not been forgotten.
    func look(_ local: Instant) -> String? {
        guard !isOver, !hasSubstitutes, local - began > Self.patience + Self.lateness else { return nil }
        return "waits for silent trackers at the end"
    }
}
