// Output for people.

import Foundation
import Primitives

/// Output for people: colour and progress only where somebody watches.
struct Terminal {
    enum Style: String {
        case bold = "1"
        case red = "31"
        case green = "32"
        case yellow = "33"
    }

    static let output = Terminal(descriptor: STDOUT_FILENO)
    static let errors = Terminal(descriptor: STDERR_FILENO)

    private let descriptor: Int32
    let isTerminal: Bool
    /// Not with NO_COLOR (https://no-color.org), nor on a terminal that can do nothing.
    let hasColour: Bool

    private init(descriptor: Int32) {
        self.descriptor = descriptor
        isTerminal = isatty(descriptor) == 1
        let environment = ProcessInfo.processInfo.environment
        hasColour = isTerminal && (environment["NO_COLOR"] ?? "").isEmpty && environment["TERM"] != "dumb"
    }

    func styled(_ text: String, _ styles: Style...) -> String {
        hasColour ? "\u{1B}[\(styles.map(\.rawValue).joined(separator: ";"))m\(text)\u{1B}[0m" : text
    }

    /// Writes text as it is; a pipe that nobody reads any more ends the program, as it should.
    func write(_ text: String) {
        var rest = Array(text.utf8)[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Foundation.write(descriptor, $0.baseAddress, $0.count) }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { return }
            rest = rest.dropFirst(count)
        }
    }
}

/// A bar on standard error that grows; nothing where nobody watches.
struct ProgressBar: ~Copyable {
    private let title: String
    private let isShown: Bool
    private var lastDrawn: ContinuousClock.Instant?
    private static let width = 30

    init(_ title: String, isShown: Bool = true) {
        self.title = title
        self.isShown = isShown && Terminal.errors.isTerminal
    }

    deinit {
        if lastDrawn != nil { Terminal.errors.write("\r\u{1B}[K") }
    }

    /// - Parameters:
    ///   - share: 0…1.
    ///   - note: behind the bar; made only when it is drawn, ten times a second.
    mutating func update(_ share: Double, note: @autoclosure () -> String) {
        guard isShown else { return }
        let now = ContinuousClock.now
        if let lastDrawn, now - lastDrawn < .milliseconds(100) { return }
        lastDrawn = now
        let full = Int((Double(Self.width) * min(max(share, 0), 1)).rounded())
        let bar = String(repeating: "█", count: full) + String(repeating: "░", count: Self.width - full)
        let percent = Int((min(max(share, 0), 1) * 100).rounded(.down))
        Terminal.errors.write("\r\u{1B}[K\(title) \(bar) \(percent) % \(note())")
    }
}
