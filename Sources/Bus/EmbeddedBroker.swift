// A small STOMP broker inside the process, for trying things out.

import Datagrams
import NIOCore
import NIOPosix
import Primitives
import Wire

// Confined to its event loop.
/// A small STOMP broker inside the process, for trying things out: topics only, on one event loop.
///
/// A subscriber that takes too little loses messages, as on any bus; it holds up nobody else. Who asks for receipts and
/// does not read them is let go.
final class EmbeddedBroker: @unchecked Sendable {
    enum Limits {
        /// More than anybody tries out trackers on one machine.
        static let clients = 64
        /// Bytes that wait for one subscriber before messages for him are dropped.
        static let outgoing = ChannelOptions.Types.WriteBufferWaterMark(low: 4 << 20, high: 16 << 20)
        /// How often heart-beats are looked at: a quarter of their interval.
        static let tick = TimeAmount.milliseconds(500)
    }

    private let loop: any EventLoop
    private var server: (any Channel)?
    private var clients: [EmbeddedBrokerClient] = []
    private var ticker: RepeatedTask?
    private var messages: UInt64 = 0

    init(loop: any EventLoop) { self.loop = loop }

    /// Binds; fails where the address is taken.
    func listen(on place: BusOptions.Broker) -> EventLoopFuture<Void> {
        ServerBootstrap(group: loop)
            .serverChannelOption(.backlog, value: 64)
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            .childChannelOption(.tcpOption(.tcp_nodelay), value: 1)
            .childChannelOption(.writeBufferWaterMark, value: Limits.outgoing)
            .childChannelOption(
                .recvAllocator,
                value: AdaptiveRecvByteBufferAllocator(minimum: 4096, initial: 65_536, maximum: 1 << 18)
            )
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    let client = EmbeddedBrokerClient(self, channel)
                    try channel.pipeline.syncOperations.addHandler(client)
                }
            }
            .bind(host: place.host, port: place.port)
            .map { channel in
                self.server = channel
                self.ticker = self.loop.scheduleRepeatedTask(initialDelay: Limits.tick, delay: Limits.tick) { _ in
                    for client in self.clients { client.tick() }
                }
            }
    }

    func close() -> EventLoopFuture<Void> {
        ticker?.cancel()
        let closing = server?.close() ?? loop.makeSucceededVoidFuture()
        server = nil
        for client in clients { client.closeNow() }
        return closing
    }

    /// - Returns: false where there are too many.
    fileprivate func joined(_ client: EmbeddedBrokerClient) -> Bool {
        guard clients.count < Limits.clients else { return false }
        clients.append(client)
        return true
    }

    fileprivate func left(_ client: EmbeddedBrokerClient) { clients.removeAll { $0 === client } }

    fileprivate func publish(_ body: [UInt8], to destination: String, by sender: EmbeddedBrokerClient) {
        messages += 1
        for client in clients {
            for subscription in client.subscriptions where subscription.destination == destination {
                if client === sender, subscription.isWithoutOwn { continue }
                client.deliver(body, destination, subscription.id, messages)
            }
        }
    }

    fileprivate func flush() { for client in clients { client.flush() } }
}

private final class EmbeddedBrokerClient: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer

    private let broker: EmbeddedBroker
    private let channel: any Channel
    private var session = StompBrokerSession(now: Clock.monotonic())
    private var effects: [StompBrokerSession.Effect] = []
    private var needsFlush = false

    init(_ broker: EmbeddedBroker, _ channel: any Channel) {
        self.broker = broker
        self.channel = channel
    }

    var subscriptions: [StompBrokerSession.Subscription] { session.subscriptions }

    func channelActive(context: ChannelHandlerContext) {
        if !broker.joined(self) { context.close(promise: nil) }
    }

    func channelInactive(context: ChannelHandlerContext) { broker.left(self) }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let buffer = unwrapInboundIn(data)
        buffer.withUnsafeReadableBytes { session.received($0, now: Clock.monotonic(), into: &effects) }
        carryOut()
    }

    func channelReadComplete(context: ChannelHandlerContext) { broker.flush() }

    func tick() {
        session.deadlineReached(now: Clock.monotonic(), into: &effects)
        carryOut()
        flush()
    }

    private func carryOut() {
        for effect in effects {
            switch effect {
            case .write(let bytes):
                guard channel.isWritable else {
                    // Messages for a slow subscriber are dropped; answers to one that asks and does not read would be
                    // kept without a bound. A heart-beat can be left out: enough is on its way.
                    if bytes.count > 1 { channel.close(promise: nil) }
                    continue
                }
                channel.write(ByteBuffer(bytes: bytes), promise: nil)
                needsFlush = true
            case .publish(let destination, let body): broker.publish(body, to: destination, by: self)
            case .close:
                flush()
                channel.close(promise: nil)
            }
        }
        effects.removeAll(keepingCapacity: true)
    }

    func deliver(_ body: [UInt8], _ destination: String, _ subscription: String, _ number: UInt64) {
        guard channel.isWritable else { return }
        let headers = StompHeaders([
            "subscription": subscription, "message-id": "\(number)", "destination": destination,
        ])
        channel.write(ByteBuffer(bytes: StompFrame(.message, headers, body: body).encoded()), promise: nil)
        needsFlush = true
        session.wrote(now: Clock.monotonic())
    }

    func flush() {
        guard needsFlush else { return }
        needsFlush = false
        channel.flush()
    }

    func closeNow() { channel.close(promise: nil) }
}
