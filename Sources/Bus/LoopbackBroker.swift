// The small STOMP broker on its own, on this machine only.

import NIOCore
import NIOPosix
import Primitives

/// The small STOMP broker on its own, on this machine only: for a demonstration whose trackers come and go.
public final class LoopbackBroker: Sendable {
    private let broker: EmbeddedBroker
    /// As in `--bus`.
    public let url: String

    private init(_ broker: EmbeddedBroker, url: String) {
        self.broker = broker
        self.url = url
    }

    /// Listens on 127.0.0.1.
    ///
    /// - Throws: `ListenFailure`, such as that the port is in use.
    public static func start(port: UInt16) async throws(ListenFailure) -> LoopbackBroker {
        let broker = EmbeddedBroker(loop: MultiThreadedEventLoopGroup.singleton.next())
        let place = BusOptions.Broker(host: "127.0.0.1", port: Int(port))
        do {
            try await broker.listen(on: place).get()
        } catch {
            throw ListenFailure(
                purpose: "the trackers' bus", address: SocketAddress(ipv4: 0x7F00_0001, port: port), error: error)
        }
        return LoopbackBroker(broker, url: "stomp://\(place)")
    }

    /// Closes the listener and all connections.
    public func stop() async { try? await broker.close().get() }
}
