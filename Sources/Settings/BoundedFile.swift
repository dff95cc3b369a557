// Files that people write, read within bounds, with errors that name the file.

import Primitives

#if canImport(Glibc)
    import Glibc
#else
    import Darwin
#endif

/// A file could not be read, or was not what it should be.
public struct TextFileError: Error, Equatable, CustomStringConvertible {
    /// As it was given.
    public var path: String
    /// A sentence each, in the order of the lines; a line number where one is to blame.
    public var problems: [Problem]

    /// What is wrong with a line, or with the whole file.
    public struct Problem: Sendable, Equatable {
        /// Counted from 1.
        public var line: Int?
        /// What is wrong and what would be right, in a sentence.
        public var message: String

        /// Takes the fields as they are.
        public init(line: Int? = nil, _ message: String) {
            self.line = line
            self.message = message
        }
    }

    /// Takes the fields as they are.
    public init(path: String, problems: [Problem]) {
        self.path = path
        self.problems = problems
    }

    /// `infohashes.txt:7: …`, a line each.
    public var description: String {
        problems.map { problem in
            problem.line.map { "\(path):\($0): \(problem.message)" } ?? "\(path): \(problem.message)"
        }.joined(separator: "\n")
    }
}

/// `read(2)`, which `BoundedFile.read` would hide.
private func readBytes(_ descriptor: Int32, _ buffer: UnsafeMutablePointer<UInt8>?, _ count: Int) -> Int {
    read(descriptor, buffer, count)
}

/// Reads files within bounds.
public enum BoundedFile {
    /// Bytes of one line, comment and all.
    static let maxLineByteCount = 4096
    /// Problems of one file that are told; beyond that the file is simply the wrong one.
    static let maxProblems = 20

    /// Reads a whole file.
    ///
    /// - Throws: a sentence with the cause, where it cannot be read or is longer than the limit.
    public static func read(_ path: String, atMost limit: Int) throws(TextFileError) -> [UInt8] {
        var content: [UInt8] = []
        try forEachChunk(path) { chunk throws(TextFileError) in
            guard content.count + chunk.count <= limit else {
                throw TextFileError(
                    path: path,
                    problems: [.init("the file is longer than \(countText(limit)) bytes; is it the right one?")])
            }
            content += chunk
        }
        return content
    }

    /// Whether there is such a directory, and this user may look into it.
    static func maySearch(_ directory: String) -> Bool { access(directory, X_OK) == 0 }

    /// Whether something has this name, a link to nowhere included.
    static func exists(_ path: String) -> Bool {
        var status = stat()
        return lstat(path, &status) == 0 || errno != ENOENT && errno != ENOTDIR
    }

    /// Reads a file line by line, without its comments and blank lines.
    ///
    /// A `#` at the start of a line or after a blank begins a comment. The lines may end in CR LF, and the file may
    /// begin with a byte order mark.
    ///
    /// - Parameters:
    ///   - path: of a regular file.
    ///   - body: takes the content of a line without blanks around it, and its number; what it returns is a problem
    ///     with the
    ///     line.
    /// - Throws: all problems together, at most `maximumProblems`.
    static func forEachLine(
        _ path: String, _ body: (_ content: ArraySlice<UInt8>, _ line: Int) -> String?
    ) throws(TextFileError) {
        var problems: [TextFileError.Problem] = []
        var number = 0
        var pending: [UInt8] = []
        var isSkipping = false
        func finishLine() {
            number += 1
            defer {
                pending.removeAll(keepingCapacity: true)
                isSkipping = false
            }
            guard problems.count < maxProblems else { return }
            if isSkipping {
                problems.append(.init(line: number, "the line is longer than \(maxLineByteCount) bytes"))
                return
            }
            let content = content(of: pending[...], isFirst: number == 1)
            guard !content.isEmpty, let message = body(content, number) else { return }
            problems.append(.init(line: number, message))
        }
        try forEachChunk(path) { chunk throws(TextFileError) in
            var rest = chunk[...]
            while let end = rest.firstIndex(of: UInt8(ascii: "\n")) {
                append(rest[..<end], to: &pending, &isSkipping)
                finishLine()
                rest = rest[(end + 1)...]
                if problems.count >= maxProblems { break }
            }
            if problems.count >= maxProblems {
                problems.append(.init("and perhaps more; only the first \(maxProblems) problems are shown"))
                throw TextFileError(path: path, problems: problems)
            }
            append(rest, to: &pending, &isSkipping)
        }
        if !pending.isEmpty || isSkipping { finishLine() }
        guard problems.isEmpty else { throw TextFileError(path: path, problems: problems) }
    }

    private static func append(_ part: ArraySlice<UInt8>, to line: inout [UInt8], _ isTooLong: inout Bool) {
        if line.count + part.count > maxLineByteCount { isTooLong = true }
        if !isTooLong { line += part }
    }

    /// A line without comment, byte order mark and the blanks around it.
    private static func content(of line: ArraySlice<UInt8>, isFirst: Bool) -> ArraySlice<UInt8> {
        func isBlank(_ byte: UInt8) -> Bool { byte == 32 || byte == 9 || byte == 13 }
        var content = line
        if isFirst, content.starts(with: [0xEF, 0xBB, 0xBF]) { content = content.dropFirst(3) }
        var index = content.startIndex
        while index < content.endIndex {
            if content[index] == UInt8(ascii: "#"), index == content.startIndex || isBlank(content[index - 1]) {
                content = content[..<index]
                break
            }
            index += 1
        }
        content = content.drop(while: isBlank)
        while let last = content.last, isBlank(last) { content = content.dropLast() }
        return content
    }

    private static func forEachChunk(
        _ path: String, _ body: ([UInt8]) throws(TextFileError) -> Void
    ) throws(TextFileError) {
        // A pipe would keep us until somebody writes into it: for ever, and no signal would end that.
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else { throw failure(path, errno) }
        defer { close(descriptor) }
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw failure(path, errno) }
        switch status.st_mode & S_IFMT {
        case S_IFREG: break
        case S_IFDIR: throw failure(path, EISDIR)
        // Nothing at all, as people write it.
        case S_IFCHR where path == "/dev/null": break
        default:
            throw TextFileError(
                path: path, problems: [.init("this is no regular file but a pipe or a device; write it to a file")])
        }
        while true {
            var failed: Int32 = 0
            let chunk = [UInt8](unsafeUninitializedCapacity: 1 << 18) { buffer, count in
                while true {
                    let got = readBytes(descriptor, buffer.baseAddress, buffer.count)
                    if got < 0, errno == EINTR { continue }
                    if got < 0 { failed = errno }
                    count = max(0, got)
                    return
                }
            }
            guard failed == 0 else { throw failure(path, failed) }
            guard !chunk.isEmpty else { return }
            try body(chunk)
        }
    }

    static func failure(_ path: String, _ code: Int32) -> TextFileError {
        let message =
            switch code {
            case ENOENT: "there is no such file; check the path"
            case EACCES, EPERM: "this user may not read it; check its permissions"
            case EISDIR: "this is a directory; name a file"
            default: "it cannot be read: \(String(cString: strerror(code)))"
            }
        return TextFileError(path: path, problems: [.init(message)])
    }
}
