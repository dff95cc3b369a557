// A walk of one's own through the explorer's choices.

import Simulator

/// A walk of one's own through the explorer's choices, one at a time.
enum Exploring {
    // One thread, and one call after another.
    nonisolated(unsafe) private static var walk: ExplorerWalk?

    static func begin(_ words: String) -> UInt32 {
        do throws(WordsRefused) {
            walk = ExplorerWalk(try ExplorerOptions(words: words))
            return tell()
        } catch {
            return Texts.refuse(error.description)
        }
    }

    static func go(_ act: (inout ExplorerWalk) -> Bool, orElse sentence: String) -> UInt32 {
        guard var own = walk else { return Texts.refuse("no walk was begun; begin one with its bounds") }
        walk = nil
        let isDone = act(&own)
        walk = own
        return isDone ? tell() : Texts.refuse(sentence)
    }

    private static func tell() -> UInt32 {
        guard let walk else { return Texts.refuse("no walk was begun; begin one with its bounds") }
        return Texts.say { json in
            json.object { json in
                json.member("state", walk.state)
                json.member("depth", walk.depth)
                json.member("bounds", walk.options.bounds)
                json.member("parents") { json in
                    json.array { json in
                        for edge in walk.edges where edge.to == walk.state { json.number(edge.from) }
                    }
                }
                json.member("trackers", walk.standings)
                json.member("underWay") { json in
                    json.array { json in
                        for messages in walk.underWay {
                            json.array { json in for message in messages { json.string(message) } }
                        }
                    }
                }
                json.member("choices") { $0.array { tell(walk.choices, &$0) } }
                json.key("broken")
                if let broken = walk.broken {
                    json.object { json in
                        json.member("invariant", broken.invariant.rawValue)
                        json.member("detail", broken.detail)
                    }
                } else {
                    json.null()
                }
                json.member("visited", walk.visitedCount)
                json.member("path", walk.story)
                json.member("statesBehind") { $0.array { for state in walk.statesBehind { $0.number(state) } } }
                json.member("edges") { json in
                    json.array { json in
                        for edge in walk.edges {
                            json.array { json in
                                json.number(edge.from)
                                json.number(edge.to)
                            }
                        }
                    }
                }
            }
        }
    }

    private static func tell(_ choices: [ExplorerWalk.Choice], _ json: inout JSON) {
        for (number, choice) in choices.enumerated() {
            json.object { json in
                json.member("number", number)
                json.member("text", choice.text)
                json.member("tracker", choice.tracker)
                json.member("from") { $0.number(choice.sender) }
                json.member("state") { $0.number(choice.state) }
                json.member("breaks", choice.isBreaking)
            }
        }
    }
}

/// Begins a walk within the bounds that the words in the room name.
@_expose(wasm, "explore")
@_cdecl("explore")
public func explore(_ byteCount: UInt32) -> UInt32 { Exploring.begin(Texts.taken(byteCount)) }

/// Where the walk stands, and what may come next.
@_expose(wasm, "explore_state")
@_cdecl("explore_state")
public func exploreState() -> UInt32 { Exploring.go({ _ in true }, orElse: "") }

/// Makes a choice, by its number.
@_expose(wasm, "explore_choose")
@_cdecl("explore_choose")
public func exploreChoose(_ number: UInt32) -> UInt32 {
    Exploring.go(
        { $0.choose(Int(clamping: number)) },
        orElse: "there is no choice \(number) here, or there are \(ExplorerWalk.maxStates) states already; go back, or "
            + "begin anew")
}

/// Takes the last choice back.
@_expose(wasm, "explore_back")
@_cdecl("explore_back")
public func exploreBack() -> UInt32 { Exploring.go({ $0.back() }, orElse: "there is nothing behind the first state") }

/// Goes to a state that was visited.
@_expose(wasm, "explore_goto")
@_cdecl("explore_goto")
public func exploreGoto(_ state: UInt32) -> UInt32 {
    Exploring.go({ $0.go(to: Int(clamping: state)) }, orElse: "state \(state) was not visited; choose one that was")
}
