// Where everything of a space-time diagram stands, and how elements are written.

import Primitives

/// Writes elements.
struct SVGPen {
    private(set) var document = ""

    mutating func line(_ text: String) {
        document += text
        document += "\n"
    }

    mutating func text(_ text: String, x: Double, y: Double, _ style: String) {
        line(
            "<text class=\"\(style)\" x=\"\(Figure.coordinate(x))\" y=\"\(Figure.coordinate(y))\">"
                + "\(Figure.escaped(text))</text>")
    }

    mutating func path(_ data: String, _ style: String, _ attributes: String = "", title: String = "") {
        element("path class=\"\(style)\" d=\"\(data)\"" + (attributes.isEmpty ? "" : " \(attributes)"), "path", title)
    }

    mutating func box(_ x: Double, _ y: Double, _ width: Double, _ height: Double, _ style: String, _ title: String) {
        let place = "x=\"\(Figure.coordinate(x))\" y=\"\(Figure.coordinate(y))\""
        let size = "width=\"\(Figure.coordinate(width))\" height=\"\(Figure.coordinate(height))\""
        element("rect class=\"\(style)\" \(place) \(size)", "rect", title)
    }

    mutating func dot(_ x: Double, _ y: Double, _ radius: Double, _ style: String, _ title: String) {
        let place = "cx=\"\(Figure.coordinate(x))\" cy=\"\(Figure.coordinate(y))\""
        element("circle class=\"\(style)\" \(place) r=\"\(Figure.coordinate(radius))\"", "circle", title)
    }

    mutating func cross(_ x: Double, _ y: Double, _ style: String, _ title: String = "") {
        let (left, top) = (Figure.coordinate(x - 4), Figure.coordinate(y - 4))
        path("M\(left) \(top)l8 8m-8 0l8 -8", style, title: title)
    }

    private mutating func element(_ head: String, _ name: String, _ title: String) {
        line(title.isEmpty ? "<\(head)/>" : "<\(head)><title>\(Figure.escaped(title))</title></\(name)>")
    }
}

/// Where everything stands.
struct DiagramLayout {
    static let left = 96.0
    static let top = 172.0
    static let laneGap = 190.0
    static let timeGap = 26.0
    static let labelHeight = 12.0
    static let nameHeight = 10.0
    /// A label further from its mark would be taken for another's.
    static let maxLabelShift = 40.0
    static let maxLabelLength = 33
    /// Many things may go wrong at once; lines lead to their words.
    static let maxBarLabelShift = 140.0
    /// Right of the last line, for what is said there.
    static let labelWidth = 64.0
    /// How far a lost message's arrow falls.
    static let lostFall = 8.0
    /// The bars of what was wrong, right of all lines, and the room for what they say.
    static let (barGap, barWidth, barTextWidth) = (11.0, 7.0, 330.0)
    static let maxBarTextLength = 58
    static let footHeight = 15.0
    /// Between two times at which something happens: at least, at most, and for a millisecond.
    static let (minStep, maxStep, millisecond) = (2.5, 34.0, 1.5)

    /// At which something is drawn, in rising order.
    let times: [Instant]
    /// Where each of them stands.
    let heights: [Double]
    let width: Double
    let bottom: Double
    /// Where the bars begin.
    let laneEnd: Double
    /// For each span, which column of bars it stands in.
    let columns: [Int]
    /// The lines under the picture.
    let foot: [(text: String, style: String)]

    var height: Double { bottom + 40 + DiagramLayout.footHeight * Double(foot.count) + (foot.isEmpty ? 0 : 8) }

    init(_ diagram: SpaceTimeDiagram) {
        var all = diagram.changes.map { $0.time } + diagram.marks.map { $0.time } + diagram.arrows.map { $0.sentAt }
        all += diagram.arrows.compactMap { $0.receivedAt }
        all += diagram.spans.map { $0.from } + diagram.spans.compactMap { $0.until }
        all.sort()
        var times: [Instant] = []
        var heights: [Double] = []
        for time in all where times.last != time {
            if let last = times.last, let height = heights.last {
                let gap = Double((time - last).nanoseconds) / 1_000_000 * DiagramLayout.millisecond
                heights.append(height + min(max(gap, DiagramLayout.minStep), DiagramLayout.maxStep))
            } else {
                heights.append(DiagramLayout.top + 14)
            }
            times.append(time)
        }
        self.times = times
        self.heights = heights
        columns = DiagramLayout.columns(diagram.spans)
        laneEnd =
            DiagramLayout.left + DiagramLayout.laneGap * Double(diagram.lanes.count) + DiagramLayout.labelWidth
        let barCount = columns.max().map { $0 + 1 } ?? 0
        let bars =
            barCount == 0 ? 0 : DiagramLayout.barGap * Double(barCount) + DiagramLayout.barTextWidth
        width = max(laneEnd + bars + 20, 860)
        foot = DiagramLayout.foot(diagram, width: width)
        bottom = (heights.last ?? DiagramLayout.top) + 30
    }

    /// Each span in the first column in which nothing else is wrong meanwhile.
    private static func columns(_ spans: [SpaceTimeDiagram.Span]) -> [Int] {
        // Until when each column is taken.
        var taken: [Instant] = []
        return spans.map { span in
            let until = span.until ?? Instant(nanoseconds: .max)
            if let free = taken.firstIndex(where: { $0 < span.from }) {
                taken[free] = until
                return free
            }
            taken.append(until)
            return taken.count - 1
        }
    }

    /// The promises that were broken, and the notes, in lines as wide as the picture.
    private static func foot(_ diagram: SpaceTimeDiagram, width: Double) -> [(text: String, style: String)] {
        let length = Int((width - left - 20) / 6.3)
        var foot: [(text: String, style: String)] = []
        for mark in diagram.marks where mark.sign == .violation {
            foot += wrapped("\(Figure.seconds(mark.time)) s: \(mark.text)", length).map { ($0, "broken") }
        }
        for note in diagram.notes { foot += wrapped(note, length).map { ($0, "note") } }
        return foot
    }

    /// Lines of so many characters at most, cut between words where there are any.
    static func wrapped(_ text: String, _ length: Int) -> [String] {
        var lines: [String] = []
        var line = ""
        for word in text.split(separator: " ", omittingEmptySubsequences: false) {
            if !line.isEmpty, line.count + 1 + word.count > length {
                lines.append(line)
                line = "    "
                line += word
            } else {
                line += line.isEmpty ? "\(word)" : " \(word)"
            }
        }
        lines.append(line)
        return lines
    }

    /// Where a column of bars is, counted from 0.
    func barX(_ column: Int) -> Double { laneEnd + DiagramLayout.barGap * Double(column) }

    /// Where the words beside the bars begin.
    var barTextX: Double { barX((columns.max() ?? 0) + 1) + 4 }

    func x(_ lane: Int) -> Double { DiagramLayout.left + 60 + DiagramLayout.laneGap * Double(lane) }

    /// How far down a time is, which is one of `times`.
    func y(_ time: Instant) -> Double {
        var (low, high) = (0, times.count)
        while low < high {
            let middle = (low + high) / 2
            if times[middle] < time { low = middle + 1 } else { high = middle }
        }
        return low < heights.count ? heights[low] : bottom
    }

    /// How far a lost message goes, which was meant for somebody so many lines away.
    static func lostWay(_ lines: Int) -> Double {
        let way = min(0.3 + 0.06 * Double(abs(lines)), 0.8) * laneGap
        return lines < 0 ? -way : way
    }

    static func shortened(_ text: String, to length: Int = maxLabelLength) -> String {
        text.count <= length ? text : text.prefix(length - 1) + "…"
    }
}
