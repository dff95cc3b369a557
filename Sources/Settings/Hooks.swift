/// The commands of an operator that a change of the role runs, and what they are told beside it.
public struct Hooks: Sendable, Equatable {
    /// Run by /bin/sh when this tracker begins to serve as master.
    public var onMaster: String?
    /// Run by /bin/sh when it follows a master, is cut off, or stops.
    public var onSlave: String?
    /// The announce URL under which clients reach this tracker.
    public var advertised: String?

    /// Takes the fields as they are; nil runs nothing.
    public init(onMaster: String? = nil, onSlave: String? = nil, advertised: String? = nil) {
        self.onMaster = onMaster
        self.onSlave = onSlave
        self.advertised = advertised
    }

    package var isEmpty: Bool { onMaster == nil && onSlave == nil }
}
