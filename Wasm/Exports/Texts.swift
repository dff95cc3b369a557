// How texts come into the module, and go out of it.

/// How texts come into the module, and go out of it: UTF-8 in its memory.
///
/// Into it: the host asks for `room`, writes there, and makes the call with the number of bytes. Out of it: a call
/// returns how many bytes there are, from `text_base` on, until the next call.
enum Texts {
    /// The longest text that comes in.
    static let maxInput = 1 << 20

    // One thread, and one call after another.
    nonisolated(unsafe) private static var output: [UInt8] = []
    nonisolated(unsafe) private static var input: [UInt8] = []

    static var outputBase: UInt32 { output.withUnsafeBufferPointer { UInt32(UInt(bitPattern: $0.baseAddress)) } }

    static func say(_ bytes: [UInt8]) -> UInt32 {
        output = bytes
        // A buffer of no bytes need not have an address.
        output.append(0)
        return UInt32(output.count - 1)
    }

    static func say(_ lines: [String]) -> UInt32 {
        var bytes: [UInt8] = []
        for line in lines {
            bytes.append(contentsOf: line.utf8)
            bytes.append(UInt8(ascii: "\n"))
        }
        return say(bytes)
    }

    static func say(_ write: (inout JSON) -> Void) -> UInt32 {
        var json = JSON()
        write(&json)
        return say(json.bytes)
    }

    /// What nobody can do, as a sentence.
    static func refuse(_ sentence: String) -> UInt32 { say { $0.object { $0.member("error", sentence) } } }

    static func room(_ byteCount: UInt32) -> UInt32 {
        guard byteCount <= maxInput else { return 0 }
        input = Array(repeating: 0, count: Int(byteCount) + 1)
        return input.withUnsafeBufferPointer { UInt32(UInt(bitPattern: $0.baseAddress)) }
    }

    /// The text that the host has written into the room.
    static func taken(_ byteCount: UInt32) -> String {
        String(decoding: input.prefix(Int(clamping: byteCount)), as: UTF8.self)
    }
}

/// Where the text begins in the module's memory; asked anew after each call that makes one.
@_expose(wasm, "text_base")
@_cdecl("text_base")
public func textBase() -> UInt32 { Texts.outputBase }

/// Where the host may write so many bytes for the next call; 0 where they are too many.
@_expose(wasm, "room")
@_cdecl("room")
public func room(_ byteCount: UInt32) -> UInt32 { Texts.room(byteCount) }
