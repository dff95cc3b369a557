// What a tracker has counted of its cluster since the process began.

/// What has gone over the bus since the process began.
public struct BusTally: Sendable, Equatable {
    /// Messages for this tracker, from others.
    public var messagesIn: UInt64 = 0
    /// Handed to the bus.
    public var messagesOut: UInt64 = 0
    /// Authentic, and yet no message of this version.
    public var malformed: UInt64 = 0
    /// Of these and of the bus's frames: from trackers that speak another version.
    public var otherVersion: UInt64 = 0
    /// Dropped because the node did not keep up.
    public var dropped: UInt64 = 0

    /// Nothing has been counted.
    public init() {}
}

/// How often what has happened since the process began.
public struct ElectionTally: Sendable, Equatable {
    /// It missed its master.
    public var suspicions: UInt64 = 0
    /// It stood for master.
    public var candidacies: UInt64 = 0
    /// It became master.
    public var victories: UInt64 = 0
    /// It ceased to be master.
    public var stepDowns: UInt64 = 0
    /// Whole states that it has fetched.
    public var transfers: UInt64 = 0
    /// What the other side of a partition knew was taken in.
    public var merges: UInt64 = 0
    /// What it held differed from what its master held.
    public var divergences: UInt64 = 0

    /// Nothing has been counted.
    public init() {}
}
