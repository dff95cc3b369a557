// Bounds the connections of a listener: while it has so many, further ones wait in the kernel's backlog.

import NIOCore

/// Stands in the pipeline of the listening socket, whose reads are accepted connections.
final class AcceptGate: ChannelDuplexHandler {
    typealias InboundIn = any Channel
    typealias InboundOut = any Channel
    typealias OutboundIn = Never
    typealias OutboundOut = Never

    private let limit: Int
    private var count = 0
    /// Whether a read was held back.
    private var isWaiting = false

    init(limit: Int) { self.limit = limit }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        count += 1
        unwrapInboundIn(data).closeFuture.hop(to: context.eventLoop).assumeIsolated().whenComplete { _ in
            self.count -= 1
            guard self.isWaiting, self.count < self.limit else { return }
            self.isWaiting = false
            context.read()
        }
        context.fireChannelRead(data)
    }

    func read(context: ChannelHandlerContext) {
        guard count < limit else {
            isWaiting = true
            return
        }
        context.read()
    }
}
