// Files, names and texts that are not what they seem: nobody waits for them, follows them or obeys them.

import Bus
import Datagrams
import Foundation
import Logging
import Primitives
import Server
import Settings
import Storage
import Testing
import TrackerLogic
import Wire

@Suite("Files that are not what they seem", .ownThreads)
struct StrangeFileTests {
    private let directory: TemporaryDirectory

    init() throws { directory = try TemporaryDirectory() }

    /// Whether something ends in time, on a thread of its own.
    private func ends(_ work: @escaping @Sendable () -> Void) async -> Bool {
        await withCheckedContinuation { continuation in
            let once = Once(continuation)
            Thread.detachNewThread {
                work()
                once.resume(true)
            }
            Thread.detachNewThread {
                Thread.sleep(forTimeInterval: 20)
                once.resume(false)
            }
        }
    }

    @Test func `a pipe in place of a list is refused, and nobody waits for it`() async throws {
        let path = directory.path("pipe")
        #expect(mkfifo(path, 0o600) == 0)
        let isOver = await ends {
            let error = #expect(throws: TextFileError.self) { try AccessRules.readInfoHashes(path, atMost: 10) }
            #expect(error?.description.contains("no regular file") == true)
        }
        #expect(isOver)
    }

    @Test func `a file that cannot be written says what, why and what to do`() throws {
        let file = try directory.write("taken", "old, and longer")
        try WrittenFile.write(Array("new".utf8), to: file)
        #expect(try BoundedFile.read(file, atMost: 100) == Array("new".utf8))
        let places = [
            (directory.path(""), "this is a directory; name a file in it"),
            (directory.path("none/a.svg"), "its directory is not there; make it, or check the path"),
            (file + "/a.svg", "a file is in the way, where a directory is named; check the path"),
            ("/dev/full", "the disk is full; make room, or name a file elsewhere"),
        ]
        for (path, words) in places {
            let error = #expect(throws: TextFileError.self) { try WrittenFile.write([1], to: path) }
            #expect(error?.description == "\(path): \(words)")
        }
    }

    @Test func `a pipe among the torrents is left out`() async throws {
        #expect(mkfifo(directory.path("a.torrent"), 0o600) == 0)
        let place = directory.path("")
        let isOver = await ends {
            let listing = try? TorrentDirectory.read(place, Limits(), logger: quiet)
            #expect(listing?.torrents.isEmpty == true)
        }
        #expect(isOver)
    }

    @Test func `a pipe in place of the cluster's key is refused, and nobody waits for it`() async throws {
        let path = directory.path("key")
        #expect(mkfifo(path, 0o600) == 0)
        let isOver = await ends {
            let error = #expect(throws: BusConfigurationError.self) { try ClusterKey(file: path) }
            #expect(error?.description.contains("this is no regular file but a pipe or a device") == true)
        }
        #expect(isOver)
    }

    @Test(arguments: ["tracker.lock", "tracker.sqlite", "tracker.mark"])
    func `a symbolic link in the data directory is not followed`(_ name: String) throws {
        let victim = try directory.write("victim", "precious")
        let data = directory.path("data")
        try FileManager.default.createDirectory(atPath: data, withIntermediateDirectories: true)
        try FileManager.default.createSymbolicLink(atPath: data + "/" + name, withDestinationPath: victim)
        let error = #expect(throws: StoreError.self) {
            try Store.open(directory: data, options: StorageTest.quick).close()
        }
        #expect(error?.description.contains("symbolic link") == true, "\(String(describing: error))")
        #expect(try String(contentsOfFile: victim, encoding: .utf8) == "precious")
    }

    @Test func `secrets that everybody can read are told, each with its cure`() throws {
        let data = directory.path("data")
        try FileManager.default.createDirectory(atPath: data, withIntermediateDirectories: true)
        let files = [
            try directory.write("token", "0123456789abcdef0123456789abcdef\n"),
            try directory.write("users", "ann k3y-of-ann\n"), try directory.write("data/tracker.sqlite", ""),
            try directory.write(
                "tracker.toml",
                """
                [cluster]
                bus = "stomp://u:sekret@b:1"
                key-file = "key"
                [console]
                token-file = "token"
                [access]
                mode = "private"
                users = "users"
                [storage]
                directory = "data"
                """),
        ]
        let key = try directory.write("key", String(repeating: "0", count: 64) + "\n")
        chmod(key, 0o600)
        chmod(data, 0o755)
        let configuration = try ServerConfiguration.load(file: files[3], environment: [:])
        for file in files { chmod(file, 0o640) }
        func warnings() -> [String] { configuration.warnings(file: files[3]) }
        #expect(warnings().count == 1)
        #expect(warnings().first?.contains("the cluster key in \(key) is one byte over and over") == true)
        for file in files {
            chmod(file, 0o644)
            #expect(warnings().contains { $0.contains("in \(file) (mode 644); run: chmod o= \(file)") }, "\(file)")
        }
        #expect(warnings().count == 5)
        #expect(!warnings().joined().contains("sekret"))
        chmod(data, 0o700)
        #expect(warnings().count == 4)
        _ = try directory.write("key", ClusterKey.makeKey())
        chmod(key, 0o600)
        #expect(warnings().count == 3)
    }

    /// As people write it: `%40` in a URL, `\u0040` in TOML, in a comment, or not at all.
    @Test(
        arguments: [
            (#"bus = "stomp://u:p%40ss@b:1""#, true), (#"bus = "stomp://u:p\u0040ss@b:1""#, true),
            (#"bus = 'stomp://u:p%40ss@b:1'"#, true), ("# it is p@ss", true),
            (#"bus = "stomp://u:0ther@b:1""#, true), (#"bus = "stomp://b:1""#, false), ("", false),
        ])
    func `a broker's password is known for one, however it is written`(_ line: String, _ isSecret: Bool) throws {
        let file = try directory.write("tracker.toml", "[cluster]\n\(line)\n")
        let key = try directory.write("key", ClusterKey.makeKey())
        chmod(key, 0o600)
        chmod(file, 0o644)
        // The environment goes before the file.
        let environment = [
            "SWARMKEEPER_CLUSTER_BUS": "stomp://u:p%40ss@b:1", "SWARMKEEPER_CLUSTER_KEY_FILE": key,
            "SWARMKEEPER_STORAGE_DIRECTORY": directory.path("data"),
        ]
        let configuration = try ServerConfiguration.load(file: file, environment: environment)
        let warnings = configuration.warnings(file: file)
        #expect(warnings.contains { $0.contains("the broker's password in \(file)") } == isSecret, "\(warnings)")
        #expect(!warnings.joined().contains("p@ss") && !warnings.joined().contains("p%40ss"))
    }

    @Test func `text that turns the writing direction, or talks to a terminal, is shown, not obeyed`() {
        let hostile = "a\u{9B}31m b\u{85}c \u{202E}gpj.exe \u{2066}x\u{2069} \u{2028}y\u{1B}[0m"
        for format in [LogFormat.text, .json] {
            let line = LineLogHandler.line(
                format, time: Date(timeIntervalSince1970: 0), level: .info, message: hostile,
                metadata: ["reason": .string(hostile)])
            let isPlain = line.unicodeScalars.allSatisfy {
                $0.value >= 0x20 && !(0x7F...0x9F).contains($0.value) && !(0x2028...0x202E).contains($0.value)
                    && !(0x2066...0x2069).contains($0.value)
            }
            #expect(isPlain, "\(line.debugDescription)")
            #expect(line.contains("gpj.exe"))
        }
        let fine = LineLogHandler.line(
            .text, time: Date(timeIntervalSince1970: 0), level: .info, message: "Zürich 東京 😀", metadata: [:])
        #expect(fine.hasSuffix("Zürich 東京 😀"))
    }

    @Test func `twenty thousand unknown keys cost no more than to read them, and a hundred are told`() {
        let keys = (0..<20_000).map { "kei-\($0) = 1\n" }.joined()
        func cost(_ text: String) -> (error: ConfigurationError?, time: Primitives.Duration) {
            let start = Clock.threadTime()
            let error = #expect(throws: ConfigurationError.self) {
                try ServerConfiguration.load(text: text, name: "t.toml", environment: ["HOME": "/root"])
            }
            return (error, Clock.threadTime() - start)
        }
        let unknown = cost(keys)
        #expect(unknown.error?.problems.count == 101)
        #expect(unknown.error?.description.contains("t.toml:1:1: unknown key \"kei-0\"") == true)
        #expect(unknown.error?.description.contains("and 19900 more problems") == true)
        // The same, and one thing to tell. Of the processor's time, which nobody else's work changes.
        #expect(unknown.time < cost("[kei]\n" + keys).time * 4)
    }
}

/// Resumes a continuation with whatever comes first.
private final class Once: @unchecked Sendable {
    private let lock = NSLock()
    private var continuation: CheckedContinuation<Bool, Never>?

    init(_ continuation: CheckedContinuation<Bool, Never>) { self.continuation = continuation }

    func resume(_ value: Bool) {
        lock.lock()
        let first = continuation
        continuation = nil
        lock.unlock()
        first?.resume(returning: value)
    }
}
