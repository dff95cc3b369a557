import Foundation

/// A directory that goes when its test does.
final class TemporaryDirectory: Sendable {
    private let url: URL

    init() throws {
        url = FileManager.default.temporaryDirectory.appending(path: "swarmkeeper-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
    }

    deinit { try? FileManager.default.removeItem(at: url) }

    /// The path of a file in it; of itself for the empty name.
    func path(_ name: String) -> String { name.isEmpty ? url.path : url.appending(path: name).path }

    /// - Returns: the path of the new file.
    func write(_ name: String, _ bytes: [UInt8]) throws -> String {
        let file = url.appending(path: name)
        try FileManager.default.createDirectory(at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
        try Data(bytes).write(to: file)
        return file.path
    }

    func write(_ name: String, _ text: String) throws -> String { try write(name, Array(text.utf8)) }
}
