// Decides when the write-ahead log is copied back into the database.

/// Decides when the write-ahead log is copied back into the database, and by whom.
///
/// A checkpoint in SQLite's automatic fashion makes one commit in a thousand wait for megabytes to be copied and
/// synced. Here the storage worker copies them beside the storage thread (PASSIVE: it waits for nobody and nobody for
/// it) and syncs the database file. But the log can only begin anew once *all* of it is copied, and a busy storage
/// thread goes on writing meanwhile. So when nearly all is copied, the storage thread copies the rest itself, between
/// two transactions: some pages and a sync of little. Its next transaction begins the log anew.
///
/// ```
/// quiet ──(the log has grown)──► copying ──(little is left)──► finishing ──► quiet
///                                  │  ▲                            │
///                                  └──┘ (much was written)         └──(a reader needs the log)──► quiet, try later
/// ```
///
/// Where the worker does not keep up with the writes, they slow down from `hardLimit` on (`Pressure`), and the storage
/// thread finishes whatever is left. A program that reads for long keeps the log from beginning anew, and nothing
/// bounds it then; that is reported.
public struct CheckpointPolicy: Sendable, Equatable {
    /// Pages of the log at which copying begins: 8 MiB.
    ///
    /// Less would sync more often, more would make syncs longer.
    public static let start = 2_048
    /// Pages that the storage thread may copy itself: 1 MiB, about 2 ms.
    public static let few = 256
    /// Pages at which the storage thread finishes whatever is left: 64 MiB.
    public static let hardLimit = 16_384
    /// Failed attempts to finish beyond the hard limit after which a reader is to blame: the worker and the console
    /// read for moments only.
    static let patience = 4

    /// Something that is to be done to the log.
    public enum Step: Sendable, Equatable {
        /// The worker copies what is there.
        case copy
        /// The storage thread copies the rest, now.
        case finish
    }

    /// How writes give way to the copying.
    public enum Pressure: Sendable, Equatable {
        case none
        /// Each transaction waits for a moment.
        case some
        /// Transactions wait for the worker to be through.
        case full
    }

    /// Pages in the log.
    public private(set) var pages = 0
    /// Those of them that are copied.
    private var copied = 0
    private var isCopying = false
    /// How often the log has begun anew, now and when the worker set to work.
    private var beginnings = 0
    private var copiedBeginning = 0
    /// Before the log has this many pages, another attempt to finish is useless.
    private var nextFinish = 0
    /// The same for the worker.
    private var nextCopy = CheckpointPolicy.start
    private var isUrgent = false
    /// Attempts to finish, one after another, that left the log beyond the hard limit.
    private var failedFinishes = 0
    /// Whether a reader has kept the log from beginning anew at the hard limit.
    public private(set) var isHeldUp = false

    /// The policy of a log that is empty.
    public init() {}

    /// What is to be done now, if anything.
    ///
    /// A `copy` is under way from here on until `copied` or `copyFailed`.
    public mutating func next() -> Step? {
        guard !isCopying else { return nil }
        let left = pages - copied
        let isLate = pages >= Self.hardLimit && !isHeldUp
        if isUrgent || (pages >= Self.start && (left <= Self.few || isLate) && pages >= nextFinish) { return .finish }
        guard pages >= nextCopy, left > Self.few else { return nil }
        isCopying = true
        copiedBeginning = beginnings
        return .copy
    }

    /// How writes are to give way now.
    public var pressure: Pressure {
        // Against a reader, waiting would not help.
        guard isCopying, !isHeldUp, pages >= Self.hardLimit else { return .none }
        return pages >= 2 * Self.hardLimit ? .full : .some
    }

    /// A transaction has left the log with so many pages.
    public mutating func committed(pages: Int) {
        if pages < self.pages {
            beginnings += 1
            copied = 0
            nextFinish = 0
            nextCopy = Self.start
            failedFinishes = 0
            isHeldUp = false
        }
        self.pages = pages
    }

    /// The worker is through.
    ///
    /// - Parameter copied: pages of the log that are in the database now.
    public mutating func copied(_ copied: Int) {
        isCopying = false
        // What was copied may be of a log that has begun anew since.
        guard copiedBeginning == beginnings else { return }
        // Without progress somebody reads from the log, and the next attempt can wait.
        nextCopy = copied > self.copied ? pages : pages + Self.start / 4
        self.copied = min(copied, pages)
    }

    /// The worker could not copy.
    public mutating func copyFailed() {
        isCopying = false
        nextCopy = pages + Self.start
    }

    /// The storage thread has tried to copy all.
    ///
    /// - Parameter copied: pages of the log that are in the database now; nil where the attempt failed.
    public mutating func finished(copied: Int?) {
        isUrgent = false
        if let copied { self.copied = min(copied, pages) }
        // Where the next transaction does not begin the log anew, somebody reads from it.
        nextFinish = pages + Self.start / 4
        nextCopy = pages + Self.start / 4
        if pages >= Self.hardLimit { failedFinishes += 1 }
        // The attempt itself does not show in `pages`: what counts is that the log still grows after earlier ones.
        if failedFinishes > Self.patience { isHeldUp = true }
    }

    /// The disk is full: an empty log gives its room back to the next transaction.
    public mutating func roomIsNeeded() { isUrgent = pages > 0 }
}
