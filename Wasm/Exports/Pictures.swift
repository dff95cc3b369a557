// What is drawn of a run, and single messages.

import Primitives
import Simulator

extension Plays {
    /// Messages, datagrams, marks, periods and roles.
    static func picture(_ play: Play) -> UInt32 {
        Texts.say { json in
            json.object { json in
                json.member("messages") { $0.array { flights(of: play, areMessages: true, &$0) } }
                json.member("datagrams") { $0.array { flights(of: play, areMessages: false, &$0) } }
                json.member("marks") { $0.array { marks(of: play, &$0) } }
                json.member("periods") { $0.array { periods(of: play, &$0) } }
                json.member("roles") { $0.array { roles(of: play, &$0) } }
            }
        }
    }

    private static func flights(of play: Play, areMessages: Bool, _ json: inout JSON) {
        for place in 0..<play.flightCount {
            let flight = play.flight(place)
            guard (flight.kind == .message) == areMessages else { continue }
            json.array { json in
                json.string(flight.name)
                if let topic = flight.topic {
                    json.string(topic.rawValue)
                    json.number(flight.from)
                    json.number(flight.to)
                } else {
                    let isRequest = flight.kind == .datagram
                    json.number(isRequest ? flight.from : flight.to)
                    json.number(isRequest ? flight.to : flight.from)
                    json.number(isRequest ? 1 : 0)
                }
                json.number(flight.sentStep)
                json.time(flight.sentAt)
                json.number(flight.endStep ?? 0)
                json.time(flight.endedAt)
                json.number(Int(flight.id))
                json.string(flight.fate)
            }
        }
    }

    private static func marks(of play: Play, _ json: inout JSON) {
        for mark in play.record.marks {
            json.array { json in
                json.number(mark.step)
                json.time(mark.transition.time)
                json.number(mark.transition.node)
                json.string(mark.transition.kind.rawValue)
                json.string(mark.transition.words)
            }
        }
    }

    private static func periods(of play: Play, _ json: inout JSON) {
        for period in play.periods {
            json.array { json in
                json.string(period.kind.rawValue)
                json.time(period.from)
                json.time(period.until)
                json.array { for place in period.trackers { $0.number(place) } }
                json.string(period.text)
            }
        }
    }

    private static func roles(of play: Play, _ json: inout JSON) {
        for mark in play.record.marks {
            guard let condition = mark.transition.kind.condition else { continue }
            json.array { json in
                json.number(mark.step)
                json.time(mark.transition.time)
                json.number(mark.transition.node)
                json.string(condition.rawValue)
            }
        }
    }

    // MARK: - One message

    static func message(_ play: Play, _ id: UInt64) -> UInt32 {
        guard let letter = play.letter(id) else {
            return Texts.refuse("event \(id) is no message and no datagram of this run")
        }
        let flight = letter.flight
        return Texts.say { json in
            json.object { json in
                json.member("id", Int(id))
                json.member("kind", flight.kind.rawValue)
                json.member("name", flight.name)
                json.member("from", flight.from)
                json.member("to", flight.to)
                json.member("text", letter.text)
                json.member("content", letter.content)
                json.member("bytes", letter.byteCount)
                json.member("sentStep", flight.sentStep)
                json.member("sentAt") { $0.time(flight.sentAt) }
                json.member("arrivedStep", flight.endStep ?? 0)
                json.member("arrivedAt") { $0.time(flight.endedAt) }
                json.member("fate", flight.fate)
            }
        }
    }
}
