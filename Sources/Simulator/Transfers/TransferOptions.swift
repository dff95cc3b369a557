// What a simulated swarm of peers is like.

import PeerLogic
import Primitives

/// What a simulated swarm of peers is like: who is there, how fast their lines are, and what goes wrong.
///
/// All of it is drawn from the seed, and may be changed before the run, as in `ScenarioOptions`.
public struct TransferOptions: Sendable, Hashable {
    /// How long there are faults.
    public var coreLength = Duration.seconds(60)
    /// Peers that have all pieces when they come; the first of them is reachable and stays.
    public var seederCount = 1
    /// Peers that want all pieces.
    public var leecherCount = 8
    /// Peers that break the protocol, by their kinds.
    public var liars: [LiarKind] = []

    /// Pieces of the torrent.
    public var pieceCount = 40
    /// Blocks of each piece but the last, 1 to 64.
    public var blocksPerPiece = 2
    /// Bytes of the last piece.
    public var lastPieceByteCount = 20_000
    /// Whether peers may come from trackers only (BEP 27).
    public var isPrivate = false

    /// Leechers in a hundred that begin with a magnet link.
    public var magnetPercent = 0
    /// Leechers in a hundred that begin with some of the pieces.
    public var partialPercent = 0
    /// Peers in a hundred that nobody can call.
    public var natPercent = 0
    /// Pairs of peers in a hundred of which one has no fast extension.
    public var withoutFastPercent = 0
    /// Peers in a hundred that limit their rates.
    public var limitPercent = 0
    /// Seeders in a hundred that end at a ratio; never the first.
    public var ratioPercent = 0
    /// Peers in a hundred that leave as soon as they are complete; never seeders.
    public var leavePercent = 0
    /// Peers come within this time.
    public var arrivalTime = Duration.seconds(2)

    /// Bytes a second of a line, each way, from and to.
    public var minLineRate = 200_000
    /// See `minLineRate`.
    public var maxLineRate = 4_000_000
    /// How long bytes are under way from a peer to the middle of the network, at most.
    public var maxLatency = Duration.milliseconds(60)
    /// By how much clocks run fast or slow at most, in millionths.
    public var maxDrift: Int64 = 0

    /// Connections of a peer at most.
    public var maxLinks = 50
    /// Peers that are given blocks at once, at most; drawn below it for each peer.
    public var maxUploadSlots = 8
    /// Bytes that pieces may have in memory.
    public var maxBufferedByteCount = 4 << 20

    /// Trackers, tier by tier, that are simple ones over HTTP.
    public var trackerTiers = [1]
    /// Whether trackers are asked over UDP.
    public var isOverUDP = false
    /// Datagrams in a hundred that are lost, each way; where any are, others are late, come twice or are spoilt.
    public var datagramLossPercent = 0
    /// Whether trackers tell who asks of itself, too.
    public var namesAsker = false
    /// Addresses in each answer at which nobody is any more.
    public var staleAddressCount = 0
    /// Answers of trackers in a hundred that take up to four seconds.
    public var slowAnswerPercent = 0
    /// Ends of sessions in a hundred right before which a tracker falls silent.
    public var quietEndPercent = 0
    /// Seconds between announces, as trackers say.
    public var interval: UInt32 = 60
    /// Web servers that have the files.
    public var webSeedCount = 0
    /// How many of them give corrupt bytes.
    public var lyingWebSeedCount = 0

    /// Bytes of what stands for the info dictionary.
    public var metadataByteCount = 40_000
    /// Whether those who begin with a magnet link may have pieces on their disks.
    public var hasPartialMagnets = false
    /// Whether peers tell their local network of themselves (BEP 14), which is one for all.
    public var announcesLocally = false
    /// Whether web servers fail again and again, and one of them for good.
    public var hasWebTrouble = false
    /// How long the world goes on when everybody is done.
    public var rest = Duration.zero

    /// Peers in a hundred that listen nowhere, and say so.
    public var hiddenPercent = 0
    /// Peers in a hundred that are told to exchange no peers.
    public var withoutExchangePercent = 0
    /// Peers in a hundred that call extensions by other numbers.
    public var otherNumbersPercent = 0
    /// Pairs of peers in a hundred without extensions, but of the first peer; 0 for as many as have no fast extension.
    public var withoutExtensionsPercent = 0
    /// Connections of the first peer at most, where it has others than the rest.
    public var firstMaxLinks: Int?
    /// Whether liars tell of addresses at which nobody can be called.
    public var hasTalesOfNoPort = false
    /// Whether those who reject all choke, too, and have allowed some of it.
    public var hasMisers = false

    /// What goes wrong by the clock.
    public var faults: [TransferFault] = []
    /// Between faults, on average; nil for none.
    public var meanFaultGap: Duration?
    /// The faults by the clock that are carried out, by their numbers from 1; nil for all.
    public var onlyFaults: [Int]?
    /// What happens at given times.
    public var script: [ScriptedTransfer] = []
    #if PLANTED_BUGS
        /// A mistake that is planted into peers.
        public var plantedBug: PlantedPeerBug?
    #endif

    /// A small swarm in which nothing goes wrong.
    public init() {}

    /// Peers of all sorts; their places are in the order seeders, leechers, liars.
    public var peerCount: Int { seederCount + leecherCount + liars.count }

    /// How the torrent is cut.
    public var layout: PieceLayout {
        let pieceLength = blocksPerPiece * 16_384
        return PieceLayout(
            pieceLength: pieceLength, totalLength: (pieceCount - 1) * pieceLength + min(lastPieceByteCount, pieceLength)
        )
    }

    /// What the swarm is like, on one line.
    public var summary: String {
        func counted(_ count: Int, _ noun: String) -> String { "\(count) \(noun)\(count == 1 ? "" : "s")" }
        var words = [
            "\(counted(seederCount, "seeder")), \(counted(leecherCount, "leecher"))",
            "\(counted(pieceCount, "piece")) of \(counted(blocksPerPiece, "block"))",
        ]
        if !liars.isEmpty { words.append("liars: \(liars.map { $0.rawValue }.joined(separator: " "))") }
        if isPrivate { words.append("private") }
        if isOverUDP { words.append("trackers over UDP, \(datagramLossPercent) % lost") }
        func percent(_ count: Int, _ what: String) { if count > 0 { words.append("\(count) % \(what)") } }
        percent(magnetPercent, "by magnet")
        percent(partialPercent, "with some pieces")
        percent(natPercent, "not reachable")
        percent(withoutFastPercent, "pairs without fast")
        percent(limitPercent, "limited")
        percent(hiddenPercent, "listening nowhere")
        percent(withoutExchangePercent, "without peer exchange")
        percent(otherNumbersPercent, "with other numbers of extensions")
        percent(withoutExtensionsPercent, "pairs without extensions")
        if webSeedCount > 0 { words.append("\(counted(webSeedCount, "web seed")), of which \(lyingWebSeedCount) lie") }
        if meanFaultGap != nil, !faults.isEmpty {
            words.append("faults: \(faults.map { $0.rawValue }.joined(separator: " "))")
        }
        return words.joined(separator: ", ")
    }
}

/// What can go wrong in a swarm by the clock.
public enum TransferFault: String, Sendable, Hashable, CaseIterable {
    // Their order is a part of what a seed means: a new one comes last.
    /// A peer dies, and comes back with the pieces that are on its disk.
    case crash
    /// A peer stops in good order, and comes back.
    case stop
    /// A connection breaks, and both sides notice.
    case cut
    /// A connection carries nothing more, and nobody notices.
    case freeze
    /// All connections of a peer carry nothing for a while, and it can make none.
    case offline
    case diskFull
    case diskReadOnly
    case diskSlow
    /// A piece on a peer's disk is gone.
    case pieceLost
    /// A tracker says nothing for a while.
    case trackerSilent
    /// A tracker answers with errors for a while.
    case trackerFails
    /// People change limits and slots.
    case settings
    /// People pause a peer, and let it go on.
    case pause
    /// People want some of the pieces for a while, and then all of them.
    case selection
    /// People do not want to wait for the next announce.
    case update
    /// All trackers are gone for a while.
    case trackersAway
    /// A tracker starts anew, and takes none of the connection ids that it has given.
    case trackerForgets
    /// A peer's disk takes nothing for long.
    case diskLong

    /// Those that each seed may draw; the others are drawn for some.
    static let common = TransferFault.allCases.prefix(13)
    static let more = TransferFault.allCases.dropFirst(13)
}

/// What a script lets happen in a swarm at a given time.
public struct ScriptedTransfer: Sendable, Hashable {
    /// What a script can let happen; peers and trackers by their places from 0.
    public enum Event: Sendable, Hashable {
        /// A peer dies, and comes back after so long.
        case crash(Int, Duration)
        /// A peer leaves for good, in good order.
        case leave(Int)
        /// A further leecher comes (it has its place already, and was not there).
        case join(Int)
        /// A peer's disk takes nothing for so long.
        case diskFails(Int, StoreProblem, Duration)
        /// A peer's piece is gone from its disk.
        case pieceLost(Int, piece: Int)
        /// All trackers are silent for so long.
        case trackersSilent(Duration)
        /// All connections of a peer carry nothing for so long.
        case offline(Int, Duration)
    }

    /// Since the world began.
    public var at: Duration
    /// What happens then.
    public var event: Event

    /// Takes the fields as they are.
    public init(at: Duration, _ event: Event) {
        self.at = at
        self.event = event
    }

    /// The place of a peer that is not there before the script lets it come.
    var joiner: Int? { if case .join(let place) = event { place } else { nil } }
}

/// How a peer breaks the protocol.
public enum LiarKind: String, Sendable, Hashable, CaseIterable {
    // Their order is a part of what a seed means: a new one comes last.
    /// Has all, gives all, and every block is corrupt.
    case poisoner
    /// One block in eight is corrupt.
    case slyPoisoner
    /// Takes requests, and never answers.
    case mute
    /// Has all, and chokes for ever.
    case choker
    /// Says that it has all, and rejects what it is asked for.
    case rejecter
    /// Sends whatever comes to its mind.
    case babbler
    /// Asks for more than anybody keeps, and sends blocks that nobody asked for.
    case flooder
    /// Gives what it is asked for, and is slow.
    case snail
    /// Says that it has the metadata, and gives other bytes, or none.
    case forger
    /// Tells of more and more peers that are nowhere.
    case gossip
}
