// Logging in and out, and who a session or a token belongs to.

import Crypto
import Datagrams
import Foundation
import Primitives
import Synchronization
import TrackerLogic
import Wire

/// What the console asks of the cluster about accounts.
public protocol AccountProvider: Sendable {
    /// All accounts and sessions as applied here, even where nobody is answered; nil before anything is known.
    func accounts() async -> Accounts?
    /// Whether this tracker knows all that is decided, as far as it can: it leads, or follows and has caught up.
    func isAbreast() async -> Bool
    /// Brings a change into the log, by the master.
    func change(_ change: ConsoleChange) async -> ChangeOutcome
}

/// Who asks.
struct Caller: Sendable, Equatable {
    /// Of the account; a word in brackets where there is none.
    var name: String
    var role: AccountRole
    /// Nil but for whoever came by a log-in.
    var session: Bytes32?

    /// Whoever is on this machine, where nobody needs to log in.
    static let local = Caller(name: "(this machine)", role: .admin)
    /// Whoever knows the token of the file.
    static let token = Caller(name: "(token)", role: .admin)
}

/// Logging in and out, and who a session or a token belongs to.
///
/// Sessions are random numbers of 256 bits, of which only the SHA-256 is kept, and replicated: so a log-in at one
/// tracker is one at all. Where nothing can be committed, whoever is known may log in still, to this tracker alone.
public actor LogIns {
    /// How long a log-in is good for.
    static let span = UInt32(12 * 3600)
    /// How long a log-in waits for a master before it is good at this tracker alone: an election, and some.
    private static let patience = Swift.Duration.seconds(5)
    /// Sessions of this tracker alone.
    private static let maxLocal = 256
    private static let idByteCount = 32

    enum Outcome {
        /// This tracker does not know yet who has an account.
        case unknown
        /// The id of the session, which nobody is told again.
        case loggedIn(id: String, Caller, isLocal: Bool)
        case wrong
        case limited(Duration)
        case busy
        /// The password was right, and yet: why not, in a sentence.
        case refused(String)
    }

    private let provider: any AccountProvider
    private let hasher: PasswordHasher
    private var limiter = LoginLimiter()
    /// Those of this tracker alone, each with the entry that last changed its account's password.
    private var local: [(session: Session, passwordAt: UInt64)] = []

    /// Logs in those whom a provider knows.
    public init(_ provider: any AccountProvider, hasher: PasswordHasher = PasswordHasher()) {
        self.provider = provider
        self.hasher = hasher
    }

    /// Whether anybody needs to log in.
    var hasAccounts: Bool { get async { (await provider.accounts()?.count ?? 0) > 0 } }

    /// Whether it is known who has an account: a newcomer has to be told.
    var knowsAccounts: Bool { get async { await provider.accounts() != nil } }

    /// Whether what is known of accounts is how things are now: whoever is cut off, or comes back, may have missed the
    /// first one.
    var isAbreast: Bool { get async { await provider.isAbreast() } }

    /// Whose a session's or a token's id is; nil for nobody's.
    func holder(of id: String, isToken: Bool) async -> Caller? {
        guard id.utf8.count <= 128, let accounts = await provider.accounts() else { return nil }
        let key = Self.key(id)
        let now = wallTimeNow().seconds
        if let kept = accounts.session(key), kept.session.isToken == isToken,
            let account = accounts.holder(of: key, at: now)
        {
            return Caller(name: Self.text(account.account.name), role: account.account.role, session: key)
        }
        // No removal from the log ends it: another tracker's console may have changed the password, or the account.
        guard !isToken, let known = local.first(where: { $0.session.key == key }), known.session.expires > now,
            let account = accounts.find(known.session.account), account.passwordAt == known.passwordAt
        else { return nil }
        return Caller(name: Self.text(account.account.name), role: account.account.role, session: key)
    }

    /// Logs somebody in.
    func logIn(_ name: String, _ password: String, from address: SocketAddress) async -> Outcome {
        guard let accounts = await provider.accounts() else { return .unknown }
        if let wait = limiter.take(address, now: Clock.monotonic()) { return .limited(wait) }
        let account = accounts.find(Array(name.utf8))
        guard let isRight = await hasher.isRight(password, account?.account.password) else { return .busy }
        guard isRight, let account else { return .wrong }
        limiter.succeeded(address)
        let changedAt = await renewed(account, password) ?? account.changedAt
        let id = Self.newID()
        let session = Session(
            key: Self.key(id), account: account.account.name, expires: wallTimeNow().seconds &+ Self.span)
        let caller = Caller(name: name, role: account.account.role, session: session.key)
        switch await decided(.putSession(session, expected: .asOf(changedAt))) {
        case .done: return .loggedIn(id: id, caller, isLocal: false)
        // What was decided against is not let in here either: the password may be an old one by now.
        case .outdated, .partWanted: return .refused("the account has been changed meanwhile; log in again")
        case .refused(let reason): return .refused(reason)
        case .dropped: break
        }
        if local.count == Self.maxLocal { local.removeFirst() }
        local.append((session, account.passwordAt))
        return .loggedIn(id: id, caller, isLocal: true)
    }

    /// A change that is asked for again while a master is being elected.
    private func decided(_ change: ConsoleChange) async -> ChangeOutcome {
        let end = ContinuousClock.now.advanced(by: LogIns.patience)
        while true {
            let outcome = await provider.change(change)
            guard case .dropped = outcome, ContinuousClock.now < end else { return outcome }
            try? await Task.sleep(for: .milliseconds(300))
        }
    }

    /// Hashes a password anew that was hashed with parameters of another time.
    ///
    /// - Returns: the index of the entry that says so; nil where there was no need, or it could not be.
    private func renewed(_ kept: KeptAccount, _ password: String) async -> UInt64? {
        guard let old = kept.account.password, hasher.isOutdated(old), kept.account.origin == .console,
            let hash = await hasher.hash(password)
        else { return nil }
        var account = kept.account
        account.password = hash
        let outcome = await provider.change(.putAccount(account, expected: .asOf(kept.changedAt)))
        guard case .done(let index) = outcome else { return nil }
        return index
    }

    /// Ends a session, everywhere.
    ///
    /// - Returns: nil where it has ended; else why that cannot be decided.
    func logOut(_ key: Bytes32) async -> String? {
        let wasLocal = local.contains { $0.session.key == key }
        local.removeAll { $0.session.key == key }
        // It may have come into the log after all, later than anybody waited.
        if wasLocal, await provider.accounts()?.session(key) == nil { return nil }
        switch await provider.change(.removeSession(key)) {
        case .done: return nil
        case .dropped(let reason), .refused(let reason): return reason
        case .outdated, .partWanted: return "the session could not be ended; try again"
        }
    }

    /// The sessions of this tracker alone of an account that has changed end.
    func forget(_ name: String) { local.removeAll { Self.text($0.session.account) == name } }

    /// Makes an API token.
    ///
    /// - Returns: the token, which nobody is told again, and what came of it.
    func makeToken(_ label: String, for name: String, seconds: UInt32) async -> (token: String, ChangeOutcome) {
        let id = Self.newID()
        let session = Session(
            key: Self.key(id), account: Array(name.utf8), expires: wallTimeNow().seconds &+ seconds, isToken: true,
            label: Array(label.utf8))
        return (id, await provider.change(.putSession(session, expected: .any)))
    }

    /// The hash of a new password; nil where too many wait.
    func hash(_ password: String) async -> PasswordHash? { await hasher.hash(password) }

    private static func newID() -> String {
        var random = SystemRandomNumberGenerator()
        let bytes = (0..<idByteCount).map { _ in UInt8.random(in: 0...255, using: &random) }
        return hexadecimal(bytes)
    }

    private static func key(_ id: String) -> Bytes32 {
        guard let key = Bytes32(SHA256.hash(data: Array(id.utf8)).map { $0 }) else {
            preconditionFailure("SHA-256 has 32 bytes")
        }
        return key
    }

    static func text(_ name: [UInt8]) -> String { String(decoding: name, as: UTF8.self) }
}
