// The stories that people have reviewed, as guides through a run.

import Simulator

/// The stories that people have reviewed: name, title, a sentence, and how the cluster elects and votes.
@_expose(wasm, "stories")
@_cdecl("stories")
public func stories() -> UInt32 {
    Texts.say { json in
        json.array { json in
            for story in Story.allCases {
                json.object { json in
                    json.member("name", story.rawValue)
                    json.member("title", story.title)
                    json.member("sentence", story.sentence)
                    json.member("profile", story.profile.rawValue)
                    json.member("words", "story=\(story.rawValue)")
                }
            }
        }
    }
}

/// The run in a slot as a guided story, one sentence a step.
@_expose(wasm, "guide")
@_cdecl("guide")
public func guide(_ slot: UInt32) -> UInt32 {
    Plays.with(slot) { play in
        let guide = play.guide
        return Texts.say { json in
            json.array { json in
                for step in guide {
                    json.object { json in
                        json.member("step", step.step)
                        json.member("at") { $0.time(step.time) }
                        json.member("sentence", step.sentence)
                        json.member("text", step.text)
                    }
                }
            }
        }
    }
}
