// Bounds the connections of a listener.

import NIOCore

/// Bounds the connections of a listener: who comes while it is full takes the place of one that brings nothing; where
/// all are being answered, the kernel's backlog keeps further ones until one is done.
///
/// Stands in the pipeline of the listening socket, whose reads are accepted connections. The place is made before
/// anybody comes for it, for the kernel does not say whether somebody waits.
final class AcceptGate: ChannelDuplexHandler {
    typealias InboundIn = any Channel
    typealias InboundOut = any Channel
    typealias OutboundIn = Never
    typealias OutboundOut = Never

    /// How long it waits before it looks again for a connection that brings nothing.
    private static let pause = TimeAmount.milliseconds(100)

    private let limit: Int
    private let idle: IdleConnections
    private var count = 0
    /// Those of `count` that are being closed to make room.
    private var leaving = 0
    /// Whether a read was held back.
    private var isWaiting = false

    init(limit: Int, idle: IdleConnections) {
        self.limit = limit
        self.idle = idle
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        count += 1
        unwrapInboundIn(data).closeFuture.hop(to: context.eventLoop).assumeIsolated().whenComplete { _ in
            self.count -= 1
            self.readOn(context)
        }
        context.fireChannelRead(data)
    }

    func read(context: ChannelHandlerContext) {
        guard !isWaiting else { return }
        isWaiting = true
        readOn(context)
        if isWaiting { makeRoom(context) }
    }

    private func readOn(_ context: ChannelHandlerContext) {
        guard isWaiting, count < limit else { return }
        isWaiting = false
        context.read()
    }

    private func makeRoom(_ context: ChannelHandlerContext) {
        // It may be a few over: NIO accepts several at a time.
        while count - leaving >= limit, let channel = idle.closeLongest() {
            leaving += 1
            channel.closeFuture.hop(to: context.eventLoop).assumeIsolated().whenComplete { _ in self.leaving -= 1 }
        }
        guard count - leaving >= limit else { return }
        context.eventLoop.assumeIsolated().scheduleTask(in: Self.pause) {
            if self.isWaiting { self.makeRoom(context) }
        }
    }
}
