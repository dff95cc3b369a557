// The yardstick.

import Datagrams
import Primitives

/// The yardstick: what a tracker with nothing to do could answer on this machine.
///
/// It takes datagrams in and gives datagrams out exactly as the tracker does, and the answers have a tracker's
/// lengths; but it looks nothing up, remembers nothing and checks nothing.
///
///     echo 127.0.0.1 6999
@main
struct Echo {
    static func main() {
        let arguments = CommandLine.arguments
        guard arguments.count == 3, let port = UInt16(arguments[2]),
            let address = SocketAddress(host: arguments[1], port: port), address.isLoopback
        else {
            print("usage: echo LOOPBACK-ADDRESS PORT")
            return
        }
        do throws(SocketError) {
            try serve(address)
        } catch {
            print(error)
        }
    }

    /// As many peers as a tracker lists by default, none of them the asker.
    static let peers = 50
    /// As many datagrams as the tracker takes at a time.
    static let batchLimit = 64

    static func serve(_ address: SocketAddress) throws(SocketError) {
        let sockets = try DatagramSockets(bind: [address])
        let poller = try Poller()
        sockets.register(with: poller)
        var requests = DatagramBatch()
        var replies = DatagramBatch()
        while true {
            if sockets.receive(into: &requests, limit: batchLimit) == 0 {
                _ = poller.wait(timeout: nil)
                continue
            }
            for request in requests.datagrams where request.byteCount >= 16 {
                let start = Int(request.offset)
                let message = requests.bytes.span.bytes.extracting(start..<start + Int(request.byteCount))
                let (action, count) = answer(message)
                let transaction = message.u32(at: 12)
                replies.append(to: request.remote, from: request.local, socket: request.socket, limit: count) { room in
                    room.storeBytes(of: action.bigEndian, as: UInt32.self)
                    room.storeBytes(of: transaction.bigEndian, toByteOffset: 4, as: UInt32.self)
                    return count
                }
            }
            sockets.send(replies)
            replies.removeAll()
        }
    }

    /// - Returns: the action of the reply, and its length.
    static func answer(_ request: RawSpan) -> (action: UInt32, byteCount: Int) {
        switch request.u32(at: 8) {
        case 0: (0, 16)
        case 2: (2, 8 + 12 * ((request.byteCount - 16) / 20))
        default: (1, 20 + 6 * peers)
        }
    }
}
