// What is known of one HTTP/1 connection.

import NIOCore

/// What is known of one HTTP/1 connection: which request is its last, and until when it may go on like this.
///
/// Clients may send several requests before they read an answer; they are answered one after the other.
///
/// Invariants: responsesEnded ≤ requestsRead ≤ requestsBegun, unless the client's bytes could not be parsed: then one
/// response (400) has no request.
struct ConnectionState {
    let idle: TimeAmount
    let writeStall: TimeAmount
    /// How long a request with a body may take to come, however steadily it does.
    let wholeBody: TimeAmount
    /// How long a body may take to bring its next `HTTPLimits.bodyPaceByteCount` bytes.
    let bodyPace: TimeAmount
    private(set) var requestsBegun = 0
    private(set) var requestsRead = 0
    private(set) var responsesEnded = 0
    /// The number, counted from 1, of the request after whose response the connection closes.
    private(set) var lastRequest: Int?
    private(set) var isStopping = false
    private var writesPending = 0
    private var lastProgress: NIODeadline
    private var lastBegan: NIODeadline
    /// Nil but for a connection that is bringing a body; else when the body last kept pace, and bytes since.
    private var body: (paceAt: NIODeadline, byteCount: Int)?

    init(_ limits: HTTPLimits, now: NIODeadline) {
        idle = TimeAmount(limits.idle)
        writeStall = TimeAmount(limits.writeStall)
        wholeBody = TimeAmount(limits.wholeBody)
        bodyPace = TimeAmount(limits.bodyPace)
        lastProgress = now
        lastBegan = now
    }

    /// Whether there is nothing to wait for but a request.
    var isIdle: Bool { responsesEnded >= requestsBegun && writesPending == 0 }

    mutating func requestBegan(isLast: Bool, now: NIODeadline) {
        requestsBegun += 1
        if isLast { lastRequest = requestsBegun }
        lastProgress = now
        lastBegan = now
    }

    /// What comes now belongs to the body of the last request.
    mutating func bodyBegan(now: NIODeadline) { body = (now, 0) }

    /// A part of a request's body has come.
    mutating func bodyReceived(_ byteCount: Int, now: NIODeadline) {
        lastProgress = now
        guard let (paceAt, before) = body else { return }
        let isInPace = before + byteCount >= HTTPLimits.bodyPaceByteCount
        body = isInPace ? (now, 0) : (paceAt, before + byteCount)
    }

    /// The body comes too slowly; the answer that says so (408) is the last.
    mutating func bodyRefused(now: NIODeadline) {
        body = nil
        requestsRead += 1
        lastProgress = now
    }

    /// Whether nothing is being answered; the connection may be bringing a request.
    var isBringing: Bool { responsesEnded >= requestsRead && writesPending == 0 }

    /// When a body has not kept pace; nil where there is none to come.
    var paceDeadline: NIODeadline? { body.map { $0.paceAt + bodyPace } }

    mutating func requestRead(now: NIODeadline) {
        body = nil
        requestsRead += 1
        lastProgress = now
    }

    /// What came is no HTTP; the answer to it (400) is the last.
    mutating func parseFailed() { lastRequest = lastRequest ?? requestsBegun + 1 }

    /// The service stops: whatever is being answered is the last.
    mutating func stop() { isStopping = true }

    /// Whether the response that is being written ends the connection.
    var isLastResponse: Bool { isStopping || responsesEnded + 1 == lastRequest }

    mutating func responseEnded(now: NIODeadline) {
        responsesEnded += 1
        lastProgress = now
    }

    mutating func writeBegan(now: NIODeadline) {
        if writesPending == 0 { lastProgress = now }
        writesPending += 1
    }

    mutating func writeEnded(now: NIODeadline) {
        writesPending -= 1
        lastProgress = now
    }

    /// When the client's patience with us, or ours with the client, has run out.
    ///
    /// - Returns: nil while a request is with the logic, which has a time limit of its own.
    var deadline: NIODeadline? {
        if writesPending > 0 { return lastProgress + writeStall }
        if responsesEnded < requestsRead { return nil }
        return requestsRead < requestsBegun ? min(lastProgress + idle, lastBegan + wholeBody) : lastProgress + idle
    }
}
