// `tracker load`.

import Datagrams
import Primitives

/// `tracker load`: asks a tracker as many clients would, and measures its answers (BEP 15).
///
/// One thread, one socket, no allocation once it runs. The socket is bound to the wildcard address, so that requests
/// can leave from many of this host's loopback addresses and each is told its answers' addressee.
public struct LoadGenerator: Sendable {
    /// What the load does.
    public let options: LoadOptions

    /// Takes the options; `run` checks them.
    public init(_ options: LoadOptions) { self.options = options }

    /// How far a load has come, a few times a second.
    public struct Progress: Sendable {
        /// Of the peers (fill), or of the time: 0…1.
        public var share: Double
        /// Requests that were answered so far.
        public var answered: UInt64
        /// Since the load began.
        public var elapsed: Duration
    }

    /// Runs the load on the calling thread, and keeps a processor busy.
    ///
    /// It ends `options.warmUp` + `options.duration` + `options.patience` + 5 s after its start at the latest.
    ///
    /// - Throws: where it could not begin. What the tracker does wrong later is counted.
    public func run(progress: (Progress) -> Void = { _ in }) throws(LoadError) -> LoadReport {
        try options.validate()
        let socket: DatagramSocket
        let poller: Poller
        let wildcard = options.target.isIPv4 ? SocketAddress(ipv4: 0, port: 0) : .unspecified
        do throws(SocketError) {
            socket = try DatagramSocket(bind: wildcard)
            poller = try Poller()
        } catch {
            throw .socket(error)
        }
        poller.add(socket, index: 0)
        var loop = LoadLoop(options, socket, poller)
        try loop.connect()
        loop.run(progress)
        return loop.report()
    }
}
