// The trackers of one torrent as its owner knows them: URLs, addresses, what they have said.

import Client
import Datagrams
import PeerLogic
import Primitives
import Wire

/// The trackers of one torrent as its owner knows them: URLs, addresses, what they have said.
///
/// A name is looked up before the first datagram, and again when its tracker has been silent; of several addresses the
/// next one is tried after a silence.
struct TrackerBook {
    private struct Place {
        var view: TransferSnapshot.Tracker
        var url: TrackerURL?
        var addresses: [SocketAddress] = []
        var next = 0
        /// Connects since the last answer.
        var silent = 0
        var isResolving = false
        /// The latest datagram, which waits for an address.
        var waiting: [UInt8]?
        /// What it has called us; it is told again (BEP 3, as trackers have it).
        var trackerID: [UInt8]?
    }

    /// Trackers of a torrent that are asked.
    static let maxCount = 100

    /// For the session: the trackers that can be asked, tier by tier.
    let kinds: [[TrackerKind]]
    private var places: [Place] = []
    /// Of the session's numbers, the places.
    private var numbers: [Int] = []

    init(_ tiers: [[String]]) {
        var kinds: [[TrackerKind]] = []
        var seen: Set<String> = []
        for (tier, urls) in tiers.enumerated() {
            var own: [TrackerKind] = []
            for text in urls where places.count < Self.maxCount && seen.insert(text).inserted {
                var place = Place(view: TransferSnapshot.Tracker(url: text, tier: tier))
                do throws(TrackerURLError) {
                    let url = try TrackerURL(text)
                    place.url = url
                    numbers.append(places.count)
                    // BEP 41: nothing is said of the usual path.
                    let isUsual = ["", "/", "/announce"].contains(url.path)
                    own.append(url.scheme == .http ? .http : .udp(urlData: isUsual ? [] : Array(url.path.utf8)))
                } catch {
                    place.view.problem = error.description
                }
                places.append(place)
            }
            if !own.isEmpty { kinds.append(own) }
        }
        self.kinds = kinds
    }

    var views: [TransferSnapshot.Tracker] { places.map(\.view) }

    /// URLs that cannot be asked, and why.
    var unusable: [(url: String, reason: String)] {
        places.compactMap { place in place.url == nil ? place.view.problem.map { (place.view.url, $0) } : nil }
    }

    mutating func answered(_ tracker: Int, seeders: Int, leechers: Int, now: Instant) {
        let place = numbers[tracker]
        places[place].view.seeders = seeders
        places[place].view.leechers = leechers
        places[place].view.answeredAt = now
        places[place].view.problem = nil
    }

    mutating func failed(_ tracker: Int, _ reason: String) { places[numbers[tracker]].view.problem = reason }

    // MARK: - UDP

    mutating func resolveAll(for transfer: Transfer) {
        for tracker in numbers.indices where places[numbers[tracker]].url?.scheme == .udp {
            resolve(tracker, for: transfer)
        }
    }

    private mutating func resolve(_ tracker: Int, for transfer: Transfer) {
        let place = numbers[tracker]
        guard let url = places[place].url, !places[place].isResolving else { return }
        places[place].isResolving = true
        let (inbox, id) = (transfer.loop.inbox, transfer.id)
        transfer.loop.resolvers.add {
            let result = Result { () throws(TrackerClientError) in
                try SocketAddress.lookUp(url.host, port: url.port)
            }
            inbox.post { loop in
                guard let transfer = loop.transfers[id] else { return }
                transfer.trackers.resolved(tracker, result, for: transfer)
            }
        }
    }

    private mutating func resolved(
        _ tracker: Int, _ result: Result<[SocketAddress], TrackerClientError>, for transfer: Transfer
    ) {
        let place = numbers[tracker]
        places[place].isResolving = false
        switch result {
        case .success(let addresses):
            if places[place].addresses != addresses {
                places[place].addresses = addresses
                places[place].next = 0
            }
            if let bytes = places[place].waiting {
                places[place].waiting = nil
                transmit(bytes, place, transfer.loop)
            }
        // The session hears nothing, and asks the next tracker after its time.
        case .failure(let error): places[place].view.problem = error.description
        }
    }

    mutating func send(_ bytes: [UInt8], to tracker: Int, for transfer: Transfer) {
        let place = numbers[tracker]
        // A connect has 16 bytes (BEP 15), all else more: only before it may the address change.
        if bytes.count == 16 {
            if places[place].silent > 0 {
                places[place].next += 1
                resolve(tracker, for: transfer)
            }
            places[place].silent += 1
        }
        guard !places[place].addresses.isEmpty else {
            places[place].waiting = bytes
            return resolve(tracker, for: transfer)
        }
        transmit(bytes, place, transfer.loop)
    }

    private func transmit(_ bytes: [UInt8], _ place: Int, _ loop: EngineLoop) {
        let addresses = places[place].addresses
        guard !addresses.isEmpty else { return }
        loop.sendDatagram(bytes, to: addresses[places[place].next % addresses.count])
    }

    /// The trackers that have an address, which a datagram came from.
    mutating func trackers(at address: SocketAddress) -> [Int] {
        numbers.indices.filter { places[numbers[$0]].addresses.contains(address) }
    }

    mutating func heard(_ tracker: Int, from address: SocketAddress) {
        let place = numbers[tracker]
        places[place].silent = 0
        places[place].view.address = address
    }

    // MARK: - HTTP

    mutating func announce(_ request: HTTPAnnounceRequest, to tracker: Int, for transfer: Transfer) {
        guard let url = places[numbers[tracker]].url else { return }
        let (inbox, id) = (transfer.loop.inbox, transfer.id)
        var options = ClientOptions()
        options.timeout = .seconds(request.event == .stopped ? 5 : 30)
        options.userAgent = transfer.loop.options.userAgent
        var announce = ClientAnnounce(
            infoHash: request.infoHash, peerID: request.peerID, port: request.port, left: request.left)
        announce.uploaded = request.uploaded
        announce.downloaded = request.downloaded
        announce.event = request.event
        announce.numWant = request.numWant
        announce.key = request.key
        announce.trackerID = places[numbers[tracker]].trackerID
        let (client, asked) = (url.client(options), announce)
        Task {
            let result: Result<ClientAnnounceReply, TrackerClientError>
            do throws(TrackerClientError) {
                result = .success(try await client.announce(asked))
            } catch {
                result = .failure(error)
            }
            inbox.post { loop in
                guard let transfer = loop.transfers[id] else { return }
                switch result {
                case .success(let reply):
                    transfer.trackers.heard(tracker, from: reply.server)
                    transfer.trackers.named(tracker, reply.trackerID)
                    transfer.step(.trackerAnswered(tracker: tracker, Self.answer(reply)))
                case .failure(let error):
                    transfer.step(.trackerAnswered(tracker: tracker, .failed(error.description)))
                }
            }
        }
    }

    /// A tracker that says nothing keeps the name that it gave before.
    private mutating func named(_ tracker: Int, _ trackerID: [UInt8]?) {
        if let trackerID { places[numbers[tracker]].trackerID = trackerID }
    }

    private static func answer(_ reply: ClientAnnounceReply) -> TrackerAnswer {
        .announced(
            interval: reply.interval, seeders: Int(reply.seeders ?? 0), leechers: Int(reply.leechers ?? 0),
            peers: reply.peers.map(\.address))
    }
}
