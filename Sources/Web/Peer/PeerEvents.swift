// The stream of server-sent events that keeps the peer's page alive.

import Foundation
import HTTPTypes
import NIOCore
import Primitives
import ServiceLifecycle
import Synchronization
import Wire

extension PeerServer {
    var eventRoutes: [APIRoute] {
        let stream = PeerEvents(provider)
        return [
            .get("/api/v1/events") { request in
                guard request.method == .get else { throw APIError(.methodNotAllowed, "a stream is read by GET") }
                var wanted: InfoHash?
                if let text = request.parameter("transfer") {
                    guard let hash = InfoHash(hexadecimal: text) else {
                        throw APIError(.badRequest, "transfer has to be an info hash: 40 hexadecimal digits")
                    }
                    wanted = hash
                }
                let (place, detail) = (try stream.enter(), wanted)
                return Response(
                    headers: [.contentType: "text/event-stream; charset=utf-8", .cacheControl: "no-store"]
                ) { writer in
                    await stream.run(place, writer, detail: detail)
                }
            }
        ]
    }
}

/// What all readers are told at one look: each transfer as JSON, made once.
private struct PeerLook: Sendable {
    struct Transfer: Sendable {
        var json: ByteBuffer
        /// The look at which it last changed.
        var changedAt: Int
    }

    var number: Int
    /// In the order of the list.
    var hashes: [String] = []
    var transfers: [String: Transfer] = [:]
    /// The rest of the state, without its first brace.
    var rest = ByteBuffer()
}

/// The stream: all transfers at first, then once a second those that have changed.
///
/// One task looks for all readers, and ends with the last one. A reader that is slow misses looks, and never a change:
/// it is told of what has changed since the look that it saw last.
///
/// - SeeAlso: the HTML standard, "Server-sent events".
final class PeerEvents: Sendable {
    /// Readers at once; more are told to come back.
    static let maxReaders = 16
    private static let pace = Swift.Duration.seconds(1)

    /// A reader's place, given back when nobody holds it any more.
    final class Place: Sendable {
        fileprivate let number: UInt64
        fileprivate let looks: AsyncStream<PeerLook>
        private let stream: PeerEvents

        fileprivate init(_ number: UInt64, _ looks: AsyncStream<PeerLook>, in stream: PeerEvents) {
            (self.number, self.looks, self.stream) = (number, looks, stream)
        }

        deinit { stream.leave(number) }
    }

    private struct State {
        var readers: [UInt64: AsyncStream<PeerLook>.Continuation] = [:]
        var lastPlace: UInt64 = 0
        var isLooking = false
        /// Kept for who comes between two looks.
        var latest: PeerLook?
    }

    private let provider: any TransferProvider
    private let state = Mutex(State())

    init(_ provider: any TransferProvider) { self.provider = provider }

    /// Takes a reader in.
    ///
    /// - Throws: `APIError`: 503 where there are too many.
    func enter() throws(APIError) -> Place {
        let (looks, continuation) = AsyncStream.makeStream(of: PeerLook.self, bufferingPolicy: .bufferingNewest(1))
        let admission = state.withLock { state -> (number: UInt64, isFirst: Bool)? in
            guard state.readers.count < Self.maxReaders else { return nil }
            state.lastPlace += 1
            state.readers[state.lastPlace] = continuation
            defer { state.isLooking = true }
            return (state.lastPlace, !state.isLooking)
        }
        guard let (number, isFirst) = admission else {
            throw APIError(
                .serviceUnavailable,
                "\(Self.maxReaders) read the stream of events already; close a page that reads one", retryAfter: 10)
        }
        if isFirst { Task { await look() } }
        return Place(number, looks, in: self)
    }

    private func leave(_ place: UInt64) { state.withLock { $0.readers[place] = nil } }

    // MARK: - For all readers

    /// Looks for all readers, until there are none.
    private func look() async {
        var last = PeerLook(number: 0)
        while true {
            let hasReaders = state.withLock { state in
                state.isLooking = !state.readers.isEmpty
                if !state.isLooking { state.latest = nil }
                return state.isLooking
            }
            guard hasReaders else { return }
            last = await next(after: last)
            for reader in state.withLock({ Array($0.readers.values) }) { reader.yield(last) }
            try? await Task.sleep(for: Self.pace)
        }
    }

    private func next(after last: PeerLook) async -> PeerLook {
        let now = await provider.state()
        var look = PeerLook(number: last.number + 1)
        for transfer in now.transfers {
            let json = Self.json(transfer)
            let known = last.transfers[transfer.hash]
            look.hashes.append(transfer.hash)
            look.transfers[transfer.hash] = PeerLook.Transfer(
                json: json, changedAt: known?.json == json ? known?.changedAt ?? look.number : look.number)
        }
        look.rest = Self.json(
            PeerStateDocument(
                at: wallTimeNow().milliseconds, creations: now.creations, totals: PeerTotals(now.transfers),
                settings: now.settings))
        look.rest.moveReaderIndex(forwardBy: 1)
        let latest = look
        state.withLock { $0.latest = latest }
        return look
    }

    private static func json(_ document: some Encodable) -> ByteBuffer {
        guard let response = try? Response.json(document, isLine: true) else {
            preconditionFailure("texts and finite numbers can be written as JSON")
        }
        return response.body
    }

    // MARK: - For one reader

    /// Writes until the reader goes, or the process stops.
    ///
    /// - Parameters:
    ///   - place: the reader's.
    ///   - writer: takes the bytes.
    ///   - detail: the transfer of which all is told.
    func run(_ place: Place, _ writer: BodyWriter, detail: InfoHash?) async {
        await cancelWhenGracefulShutdown {
            do {
                // A reader that loses the connection comes back after this.
                try await writer.write(ByteBuffer(string: "retry: 1000\n\n"))
                var seen = 0
                var told: Set<String> = []
                func tell(_ look: PeerLook) async throws {
                    var bytes = Self.event(look, after: seen, &told)
                    seen = look.number
                    if let detail { bytes.writeImmutableBuffer(await self.detail(detail)) }
                    try await writer.write(bytes)
                }
                if let latest = self.state.withLock({ $0.latest }) { try await tell(latest) }
                for await look in place.looks where look.number > seen { try await tell(look) }
            } catch {
                // The reader has gone, or the process stops.
            }
        }
    }

    private static func event(_ look: PeerLook, after seen: Int, _ told: inout Set<String>) -> ByteBuffer {
        var event = ByteBuffer(string: "event: state\ndata: {\"transfers\":[")
        var isFirst = true
        for hash in look.hashes {
            guard let transfer = look.transfers[hash], transfer.changedAt > seen || !told.contains(hash) else {
                continue
            }
            if !isFirst { event.writeString(",") }
            isFirst = false
            event.writeImmutableBuffer(transfer.json)
        }
        let gone = told.filter { look.transfers[$0] == nil }.sorted()
        event.writeString("],\"gone\":[\(gone.map { "\"\($0)\"" }.joined(separator: ","))],")
        event.writeImmutableBuffer(look.rest)
        event.writeString("\n\n")
        told = Set(look.hashes)
        return event
    }

    private func detail(_ hash: InfoHash) async -> ByteBuffer {
        guard let detail = try? await provider.transfer(hash) else { return ByteBuffer() }
        var event = ByteBuffer(string: "event: detail\ndata: ")
        event.writeImmutableBuffer(Self.json(detail))
        event.writeString("\n\n")
        return event
    }
}

/// The state but its transfers.
struct PeerStateDocument: Encodable {
    var at: Int64
    var creations: [PeerCreation]
    var totals: PeerTotals
    var settings: PeerSettings
}
