// The API's pages of the recording.

import HTTPTypes
import Wire

/// What is recorded of the tracker, for people.
public struct RecordingFigures: Sendable, Hashable {
    /// Whether a recording is wanted.
    public var isOn = false
    /// Seconds up to now that can be replayed; nil where none can.
    public var seconds: Double?
    /// Bytes of the ring.
    public var byteCount = 0
    /// Bytes of the last image of the state in it.
    public var imageByteCount = 0
    /// Whether the state is too large for the ring, so that nothing can be replayed.
    public var isTooLarge = false
    /// Seconds that the slowest image has held up the tracker.
    public var slowestImage = 0.0
    /// Why nothing is recorded, where it is wanted.
    public var problem: String?

    /// Nothing is recorded.
    public init() {}

    /// Takes the fields as they are.
    public init(
        isOn: Bool, seconds: Double?, byteCount: Int, imageByteCount: Int, isTooLarge: Bool, slowestImage: Double
    ) {
        (self.isOn, self.seconds, self.byteCount) = (isOn, seconds, byteCount)
        (self.imageByteCount, self.isTooLarge, self.slowestImage) = (imageByteCount, isTooLarge, slowestImage)
    }
}

/// What became of the wish to copy a recording.
public enum RecordingCopy: Sendable, Hashable {
    /// The path of the copy, on the tracker's machine.
    case done(String)
    /// Why there is none, with what to do.
    case refused(String)
}

/// Records the tracker.
public protocol RecordingProvider: Sendable {
    /// How it fares.
    var figures: RecordingFigures { get }
    /// Copies the recording as it is now to a file beside the record.
    func copy() async -> RecordingCopy
}

struct RecordingDocument: Encodable {
    /// `ring` or `none`.
    var mode: String
    /// Left out where nothing can be replayed.
    var seconds: Double?
    var bytes: Int
    var imageBytes: Int
    var slowestImageSeconds: Double
    /// Left out where all is well.
    var problem: String?

    init(_ figures: RecordingFigures) {
        mode = figures.isOn ? "ring" : "none"
        seconds = figures.seconds.map { ($0 * 10).rounded() / 10 }
        bytes = figures.byteCount
        imageBytes = figures.imageByteCount
        slowestImageSeconds = figures.slowestImage
        problem =
            figures.problem
            ?? (figures.isTooLarge ? "the state is too large for the ring: nothing can be replayed" : nil)
    }
}

private struct RecordingCopyDocument: Encodable {
    var file: String
}

extension APIServer {
    func recordingRoutes(_ recordings: any RecordingProvider) -> [APIRoute] {
        [
            // It holds addresses and the cluster's secret.
            APIRoute.post("/api/v1/recording") { _ in
                switch await recordings.copy() {
                case .done(let path): return try .json(RecordingCopyDocument(file: path), status: .created)
                case .refused(let reason): throw APIError(.conflict, reason)
                }
            }.needing(.admin)
        ]
    }
}
