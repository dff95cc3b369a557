// The simulator for browsers: where its module is found, and whether it is one.

import Logging
import Primitives

/// The simulator's module of WebAssembly, read from its file.
public struct SimulatorFile: Sendable, Equatable {
    /// Bytes of a module; the simulator's has some three million.
    public static let maxByteCount = 16 << 20
    /// As it is called where it is found without being named.
    public static let name = "simulator.wasm"

    /// Where it was read.
    public var path: String
    /// Of the module.
    public var bytes: [UInt8]
    /// The same as gzip, where `simulator.wasm.gz` lies beside it and is of the very same bytes.
    public var gzipped: [UInt8]?

    /// Reads a module.
    ///
    /// - Throws: why the file cannot be read, or that it is no module.
    public static func read(_ path: String) throws(TextFileError) -> SimulatorFile {
        let bytes = try BoundedFile.read(path, atMost: maxByteCount)
        guard bytes.starts(with: [0x00, 0x61, 0x73, 0x6D, 0x01, 0x00, 0x00, 0x00]) else {
            throw TextFileError(
                path: path,
                problems: [
                    .init(
                        "this is no module of WebAssembly; name the simulator.wasm that «make wasm» has made "
                            + "(.build-wasm/simulator.wasm)")
                ])
        }
        let gzipped = try? BoundedFile.read(path + ".gz", atMost: maxByteCount)
        return SimulatorFile(path: path, bytes: bytes, gzipped: gzipped.flatMap { isGzip($0, of: bytes) ? $0 : nil })
    }

    /// Where the module is looked for: beside the program, where packages keep what belongs to it, and in the folder of
    /// the package in which `make` has built both.
    ///
    /// - Parameter program: the path of the program, without links in it.
    /// - Returns: paths, the first that is there counts.
    public static func places(of program: String) -> [String] {
        let parts = program.split(separator: "/")
        guard program.hasPrefix("/"), let file = parts.indices.last else { return [] }
        func path(_ parts: some Sequence<Substring>, _ rest: String) -> String {
            parts.map { "/" + $0 }.joined() + "/" + rest
        }
        var places = [path(parts[..<file], name)]
        if file > 0 { places.append(path(parts[..<(file - 1)], "share/swarmkeeper/\(name)")) }
        if let build = parts[..<file].lastIndex(of: ".build") {
            places.append(path(parts[..<build], ".build-wasm/\(name)"))
        }
        return places
    }

    /// Whether bytes are a gzip file of other bytes, as far as its end tells: their checksum and their number.
    ///
    /// - SeeAlso: RFC 1952, 2.3.
    private static func isGzip(_ gzipped: [UInt8], of bytes: [UInt8]) -> Bool {
        guard gzipped.count >= 18, gzipped.starts(with: [0x1F, 0x8B, 0x08]) else { return false }
        func number(_ place: Int) -> UInt32 {
            (0..<4).reduce(0) { $0 | UInt32(gzipped[place + $1]) << (8 * UInt32($1)) }
        }
        return number(gzipped.count - 4) == UInt32(truncatingIfNeeded: bytes.count)
            && number(gzipped.count - 8) == crc32(bytes)
    }

    /// The checksum of gzip.
    private static func crc32(_ bytes: [UInt8]) -> UInt32 {
        let table = (0..<256 as Range<UInt32>).map { byte in
            (0..<8).reduce(byte) { sum, _ in sum & 1 == 0 ? sum >> 1 : sum >> 1 ^ 0xEDB8_8320 }
        }
        var sum = UInt32.max
        for byte in bytes { sum = sum >> 8 ^ table[Int(sum & 0xFF ^ UInt32(byte))] }
        return ~sum
    }
}

extension ServerConfiguration {
    /// Reads the simulator that the console's page is to run: the one that is named, or the first that is found.
    ///
    /// - Parameters:
    ///   - program: the path of this program, without links in it; nil to read only what is named.
    ///   - logger: told where one was found that cannot be used, for the tracker works without it.
    /// - Returns: nil where there is none, or no console to show it.
    /// - Throws: what is wrong with the one that is named.
    public func simulator(
        of program: String?, _ logger: Logger? = nil
    ) throws(TextFileError) -> SimulatorFile? {
        guard console != nil else { return nil }
        if let simulatorFile { return try SimulatorFile.read(simulatorFile) }
        guard let place = program.map(SimulatorFile.places)?.first(where: BoundedFile.exists) else { return nil }
        do {
            return try SimulatorFile.read(place)
        } catch {
            logger?.warning("the page of the simulator has none to run: \(error.description)")
            return nil
        }
    }
}
