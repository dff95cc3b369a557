// Where the program finds the simulator for its page.

import Foundation
import Settings
import Testing

@Suite("Simulator: its file")
struct SimulatorFileTests {
    private static let module: [UInt8] = [0, 0x61, 0x73, 0x6D, 1, 0, 0, 0] + Array("123456789".utf8)
    /// What `gzip -9n` makes of it.
    private static let gzipped: [UInt8] = [
        0x1F, 0x8B, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0x03, 0x63, 0x48, 0x2C, 0xCE, 0x65, 0x64,
        0x60, 0x60, 0x30, 0x34, 0x32, 0x36, 0x31, 0x35, 0x33, 0xB7, 0xB0, 0x04, 0x00, 0x01, 0x56, 0xAB,
        0x82, 0x11, 0x00, 0x00, 0x00,
    ]
    private let directory: TemporaryDirectory

    init() throws { directory = try TemporaryDirectory() }

    private func found(of program: String?, named: String? = nil) throws -> SimulatorFile? {
        var configuration = ServerConfiguration()
        configuration.simulatorFile = named
        return try configuration.simulator(of: program)
    }

    @Test func `it is looked for beside the program, in the share of its prefix, and where make puts it`() {
        #expect(
            SimulatorFile.places(of: "/usr/local/bin/tracker") == [
                "/usr/local/bin/simulator.wasm", "/usr/local/share/swarmkeeper/simulator.wasm",
            ])
        #expect(
            SimulatorFile.places(of: "/src/.build/x86_64-unknown-linux-gnu/release/tracker").last
                == "/src/.build-wasm/simulator.wasm")
        #expect(SimulatorFile.places(of: "/tracker") == ["/simulator.wasm"])
        #expect(SimulatorFile.places(of: "tracker").isEmpty)
    }

    @Test func `the first that is there counts, and one that is named before all`() throws {
        let program = directory.path("bin/tracker")
        #expect(try found(of: program) == nil)
        let shared = try directory.write("share/swarmkeeper/simulator.wasm", Self.module)
        let first = try #require(try found(of: program))
        #expect(first.path == shared && first.bytes == Self.module && first.gzipped == nil)
        let near = try directory.write("bin/simulator.wasm", Self.module + [1])
        #expect(try found(of: program)?.path == near)
        let named = try directory.write("other.wasm", Self.module + [2])
        #expect(try found(of: program, named: named)?.bytes.last == 2)
        #expect(try found(of: nil) == nil)
    }

    @Test func `without a console nothing is read`() throws {
        var configuration = ServerConfiguration()
        configuration.console = nil
        configuration.simulatorFile = directory.path("none")
        #expect(try configuration.simulator(of: nil) == nil)
    }

    @Test(arguments: [[], Array("\u{7F}ELF".utf8), [0, 0x61, 0x73, 0x6D, 2, 0, 0, 0], [0, 0x61, 0x73]])
    func `what is no module is refused where it was named, and left alone where it was found`(bytes: [UInt8]) throws {
        let file = try directory.write("simulator.wasm", bytes)
        let problem =
            "this is no module of WebAssembly; name the simulator.wasm that «make wasm» has made "
            + "(.build-wasm/simulator.wasm)"
        let error = #expect(throws: TextFileError.self) { try found(of: nil, named: file) }
        #expect(error?.problems == [.init(problem)])
        #expect(try found(of: directory.path("tracker")) == nil)
    }

    @Test func `one that is not there, or too long, is refused with the reason`() throws {
        #expect(throws: TextFileError.self) { try found(of: nil, named: directory.path("none")) }
        let large = directory.path("large.wasm")
        #expect(FileManager.default.createFile(atPath: large, contents: Data(Self.module)))
        let handle = try #require(FileHandle(forWritingAtPath: large))
        try handle.truncate(atOffset: UInt64(SimulatorFile.maxByteCount) + 1)
        let error = #expect(throws: TextFileError.self) { try found(of: nil, named: large) }
        #expect(error?.description.contains("longer than") == true)
    }

    @Test func `the gzip file beside it is taken where it is of the same bytes, and only there`() throws {
        let file = try directory.write("simulator.wasm", Self.module)
        #expect(try SimulatorFile.read(file).gzipped == nil)
        _ = try directory.write("simulator.wasm.gz", Self.gzipped)
        #expect(try SimulatorFile.read(file).gzipped == Self.gzipped)
        // As long, and yet another one.
        _ = try directory.write("simulator.wasm", Self.module.dropLast() + [0])
        #expect(try SimulatorFile.read(file).gzipped == nil)
        _ = try directory.write("simulator.wasm", Self.module)
        for count in 0..<Self.gzipped.count {
            _ = try directory.write("simulator.wasm.gz", Array(Self.gzipped.prefix(count)))
            #expect(try SimulatorFile.read(file).gzipped == nil, "\(count)")
        }
    }
}
