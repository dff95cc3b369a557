// Why a listener could not be opened.

import NIOCore
import Primitives

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#endif

/// Why a listener could not be opened, in words that name the address and the way out.
public struct ListenFailure: Error, Equatable, CustomStringConvertible {
    /// Why, as far as it is known.
    public enum Cause: Sendable, Hashable {
        case addressInUse
        case notPermitted
        case noSuchAddress
        case familyNotSupported
        case tooManyFiles
        /// The API is open to others, and has neither accounts nor a token.
        case tokenMissing
        /// The system's words.
        case other(String)
    }

    /// What was to listen, as in "cannot listen for …".
    public var purpose: String
    /// Where it was to listen.
    public var address: Primitives.SocketAddress
    /// Why it could not.
    public var cause: Cause

    /// Takes the fields as they are.
    public init(purpose: String, address: Primitives.SocketAddress, cause: Cause) {
        self.purpose = purpose
        self.address = address
        self.cause = cause
    }

    package init(purpose: String, address: Primitives.SocketAddress, error: any Error) {
        self.init(purpose: purpose, address: address, cause: Self.cause(of: error))
    }

    private static func cause(of error: any Error) -> Cause {
        guard let error = error as? IOError else { return .other("\(error)") }
        switch error.errnoCode {
        case EADDRINUSE: return .addressInUse
        case EACCES, EPERM: return .notPermitted
        case EADDRNOTAVAIL: return .noSuchAddress
        case EAFNOSUPPORT: return .familyNotSupported
        case EMFILE, ENFILE: return .tooManyFiles
        default: return .other(String(cString: strerror(error.errnoCode)))
        }
    }

    /// A sentence that names the address, the cause and the way out.
    public var description: String { "cannot listen for \(purpose) on \(address): \(reason)" }

    private var reason: String {
        switch cause {
        case .addressInUse:
            "another program has this port; stop it, or choose another port"
        case .notPermitted:
            address.port < 1024 && address.port > 0
                ? "no permission; ports below 1024 need root or the capability CAP_NET_BIND_SERVICE"
                : "no permission"
        case .noSuchAddress:
            "this machine has no such address; 0.0.0.0 and [::] stand for all that it has"
        case .familyNotSupported:
            "this machine has no \(address.isIPv4 ? "IPv4" : "IPv6")"
        case .tooManyFiles:
            "no file descriptors left; raise the limit (ulimit -n)"
        case .tokenMissing:
            "others can reach this address, so a log-in is needed, and there are no accounts yet; name a file of "
                + "accounts (--console-accounts-file) or of a token (--console-token-file), or listen on 127.0.0.1 and "
                + "make an account there (tracker user add)"
        case .other(let words):
            words
        }
    }
}
