// One TCP or TLS connection to a broker.

import Datagrams
import NIOCore
import NIOPosix
import NIOSSL
import NIOTLS
import Primitives
import Wire

#if canImport(Glibc)
    import Glibc
#else
    import Darwin
#endif

/// What a connection tells; called on the event loop.
protocol StompConnectionOwner: AnyObject {
    func connectionIsReady(_ connection: StompConnection)
    /// A message's body; nil: one that cannot be ours.
    func connection(_ connection: StompConnection, received body: [UInt8]?)
    /// All bytes of one read have been looked at.
    func connectionHasRead(_ connection: StompConnection)
    func connectionIsWritable(_ connection: StompConnection)
    /// The last call. A failure of nil: it was to end.
    func connection(_ connection: StompConnection, ended failure: StompFailure?)
}

/// What connections are made with.
struct StompPlan {
    var options: BusOptions.Stomp
    /// nil: without TLS.
    var tls: NIOSSLContext?
    var destinations: [String]

    static let connectTimeout = TimeAmount.seconds(5)
    /// Bytes that NIO keeps for a slow broker; the rest waits in the queue, where the oldest can go.
    static let outgoing = ChannelOptions.Types.WriteBufferWaterMark(low: 256 << 10, high: 1 << 20)
}

// Confined to its event loop: made there, called there, and handlers call back there.
/// One TCP or TLS connection to a broker: carries out what a `StompLink` says, and tells its owner what comes.
///
/// Everything here happens on one event loop.
final class StompConnection: @unchecked Sendable {
    let broker: Int
    private let plan: StompPlan
    private let loop: any EventLoop
    private weak var owner: (any StompConnectionOwner)?
    private var channel: (any Channel)?
    private var link: StompLink?
    private var timer: (at: Instant, task: Scheduled<Void>)?
    private var hasEnded = false
    private var isToEnd = false
    /// What an error on the way said, for when the connection is closed.
    private var problem: String?

    init(broker: Int, plan: StompPlan, owner: any StompConnectionOwner, loop: any EventLoop) {
        self.broker = broker
        self.plan = plan
        self.owner = owner
        self.loop = loop
    }

    var isReady: Bool { link?.isReady ?? false }
    var isWritable: Bool { channel?.isWritable ?? false }
    func readyFor(now: Instant) -> Primitives.Duration { link?.readyFor(now: now) ?? .zero }

    func open() {
        let place = plan.options.brokers[broker]
        ClientBootstrap(group: loop)
            .connectTimeout(StompPlan.connectTimeout)
            .channelOption(.tcpOption(.tcp_nodelay), value: 1)
            .channelOption(.writeBufferWaterMark, value: StompPlan.outgoing)
            .channelOption(
                .recvAllocator,
                value: AdaptiveRecvByteBufferAllocator(minimum: 4096, initial: 65_536, maximum: 1 << 18)
            )
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    if let tls = self.plan.tls {
                        try channel.pipeline.syncOperations.addHandler(Self.tlsHandler(tls, place.host))
                    }
                    let handler = StompConnectionHandler(self, awaitsTLS: self.plan.tls != nil)
                    try channel.pipeline.syncOperations.addHandler(handler)
                }
            }
            .connect(host: place.host, port: place.port)
            .whenComplete { result in
                switch result {
                case .success(let channel):
                    self.channel = channel
                    if self.isToEnd { channel.close(promise: nil) }
                case .failure(let error): self.finish(.closed(Self.words(error)))
                }
            }
    }

    private static func tlsHandler(_ context: NIOSSLContext, _ host: String) throws -> NIOSSLClientHandler {
        // An address cannot be a server name; it is then checked against the addresses of the certificate.
        let isAddress = Primitives.SocketAddress(host: host, port: 0) != nil
        return try NIOSSLClientHandler(context: context, serverHostname: isAddress ? nil : host)
    }

    /// Sends a frame; ready connections only.
    func send(prefix: [UInt8], body: [UInt8]) {
        guard let channel else { preconditionFailure("a ready connection has a channel") }
        var buffer = channel.allocator.buffer(capacity: prefix.count + body.count + 32)
        buffer.writeBytes(prefix)
        buffer.writeString("content-length:\(body.count)\n\n")
        buffer.writeBytes(body)
        buffer.writeInteger(UInt8(0))
        channel.write(buffer, promise: nil)
    }

    func flush() {
        channel?.flush()
        link?.wrote(now: Clock.monotonic())
    }

    /// Ends in good order; the owner hears of it.
    func end() {
        isToEnd = true
        guard link != nil else {
            if let channel { channel.close(promise: nil) } else { finish(nil) }
            return
        }
        perform { link, now, effects in link.end(now: now, into: &effects) }
    }

    /// Ends at once, and says nothing more.
    func abandon() {
        owner = nil
        isToEnd = true
        channel?.close(promise: nil)
        finish(nil)
    }

    // MARK: What the channel says

    fileprivate func opened(_ channel: any Channel) {
        guard !hasEnded else { return channel.close(promise: nil) }
        self.channel = channel
        var effects: [StompLink.Effect] = []
        link = StompLink(
            login: plan.options.login, virtualHost: plan.options.virtualHost, destinations: plan.destinations,
            now: Clock.monotonic(), into: &effects)
        carryOut(effects)
    }

    fileprivate func read(_ buffer: ByteBuffer) {
        perform { link, now, effects in
            buffer.withUnsafeReadableBytes { link.received($0, now: now, into: &effects) }
        }
    }

    fileprivate func readComplete() { if !hasEnded { owner?.connectionHasRead(self) } }

    fileprivate func writability(_ isWritable: Bool) {
        perform { link, now, _ in link.writability(isWritable, now: now) }
        if isWritable, isReady { owner?.connectionIsWritable(self) }
    }

    fileprivate func failed(_ error: any Error) { problem = problem ?? Self.words(error) }

    fileprivate func closed() {
        let reason = problem ?? "it closed the connection"
        guard link != nil else {
            return finish(.closed(problem ?? "\(reason) before TLS was agreed. Check that the port speaks TLS"))
        }
        perform { link, _, effects in link.closed(reason, into: &effects) }
        finish(.closed(reason))
    }

    private func perform(_ body: (inout StompLink, Instant, inout [StompLink.Effect]) -> Void) {
        guard !hasEnded, link != nil else { return }
        var effects: [StompLink.Effect] = []
        body(&link!, Clock.monotonic(), &effects)
        carryOut(effects)
    }

    private func carryOut(_ effects: [StompLink.Effect]) {
        for effect in effects {
            guard !hasEnded else { return }
            switch effect {
            case .write(let bytes): channel?.writeAndFlush(ByteBuffer(bytes: bytes), promise: nil)
            case .ready: owner?.connectionIsReady(self)
            case .received(let body): owner?.connection(self, received: body)
            case .passedOver: owner?.connection(self, received: nil)
            case .close(let failure):
                // Before the channel says that it is closed, which would be told as the reason.
                finish(failure)
                channel?.close(promise: nil)
            }
        }
        schedule()
    }

    private func finish(_ failure: StompFailure?) {
        guard !hasEnded else { return }
        hasEnded = true
        timer?.task.cancel()
        timer = nil
        owner?.connection(self, ended: isToEnd ? nil : failure)
    }

    private func schedule() {
        guard !hasEnded, let deadline = link?.nextDeadline else { return }
        // One that comes too early finds nothing to do and is set again: cheaper than a new timer each time.
        if let timer, timer.at <= deadline { return }
        timer?.task.cancel()
        let wait = deadline - Clock.monotonic()
        let task = loop.scheduleTask(in: .nanoseconds(max(0, wait.nanoseconds))) { [weak self] in
            guard let self else { return }
            self.timer = nil
            self.perform { link, now, effects in link.deadlineReached(now: now, into: &effects) }
        }
        timer = (deadline, task)
    }

    /// An error of the network, for people.
    ///
    /// It knows no login.
    private static func words(_ error: any Error) -> String {
        switch error {
        case let error as NIOConnectionError:
            if let first = error.connectionErrors.first { return words(first.error) }
            if error.dnsAError != nil || error.dnsAAAAError != nil { return "there is no host of this name. Check it" }
            return "it cannot be reached"
        case let error as IOError:
            switch error.errnoCode {
            case ECONNREFUSED: return "nobody listens there. Start the broker, or check host and port"
            case ECONNRESET, EPIPE: return "it broke the connection"
            case EHOSTUNREACH, ENETUNREACH: return "no route leads there. Check the network"
            case ETIMEDOUT: return "it does not answer. Check the network and its firewalls"
            default: return "\(error)"
            }
        case ChannelError.connectTimeout:
            return "it does not answer within \(StompPlan.connectTimeout.nanoseconds / 1_000_000_000) s. Check the "
                + "network and its firewalls"
        case is NIOSSLError, is NIOSSLExtraError, is BoringSSLError: return tlsWords("\(error)")
        default: return "\(error)"
        }
    }
}

extension StompConnection {
    /// The library's own words name its source files and not what to do.
    private static func tlsWords(_ error: String) -> String {
        if error.contains("CERTIFICATE_VERIFY_FAILED") {
            return "its certificate has expired, or is signed by nobody whom this host trusts. Look at its dates, or "
                + "name a file with the certificate of who signed it: ?ca=FILE"
        }
        if error.contains("alidateHostname") {
            return "its certificate is for another name. Write the broker's host as its certificate has it"
        }
        return "TLS could not be agreed. Check that the port speaks TLS 1.2 or later; one that does not wants stomp://"
    }
}

private final class StompConnectionHandler: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer

    private let connection: StompConnection
    private let awaitsTLS: Bool

    init(_ connection: StompConnection, awaitsTLS: Bool) {
        self.connection = connection
        self.awaitsTLS = awaitsTLS
    }

    func channelActive(context: ChannelHandlerContext) {
        if !awaitsTLS { connection.opened(context.channel) }
        context.fireChannelActive()
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if awaitsTLS, case .handshakeCompleted? = event as? TLSUserEvent { connection.opened(context.channel) }
        context.fireUserInboundEventTriggered(event)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) { connection.read(unwrapInboundIn(data)) }

    func channelReadComplete(context: ChannelHandlerContext) {
        // ActiveMQ leaves Nagle's algorithm on: the end of a long message waits for our acknowledgement, which the
        // kernel puts off for 40 ms. It forgets this option with time, so it is set after each read. A kernel that
        // does not know it only makes things slower.
        #if canImport(Glibc)
            try? context.channel.syncOptions?.setOption(Self.acknowledgeAtOnce, value: 1)
        #endif
        connection.readComplete()
    }

    #if canImport(Glibc)
        private static let acknowledgeAtOnce = ChannelOptions.Types.SocketOption(
            level: .tcp, name: NIOBSDSocket.Option(rawValue: TCP_QUICKACK))
    #endif

    func channelWritabilityChanged(context: ChannelHandlerContext) {
        connection.writability(context.channel.isWritable)
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        connection.failed(error)
        context.close(promise: nil)
    }

    func channelInactive(context: ChannelHandlerContext) { connection.closed() }
}
