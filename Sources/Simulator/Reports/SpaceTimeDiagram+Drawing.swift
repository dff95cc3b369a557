/// Draws a space-time diagram as SVG.

import Primitives

extension SpaceTimeDiagram {
    /// The document.
    public func svg() -> String {
        let plan = Layout(self)
        let (width, height) = (Figure.coordinate(plan.width), Figure.coordinate(plan.height))
        var out = Pen()
        out.line(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 \(width) \(height)\" width=\"\(width)\" "
                + "height=\"\(height)\" role=\"img\">")
        out.line("<title>\(Figure.escaped(title))</title>")
        out.line("<style>\(SpaceTimeDiagram.style)</style>")
        out.line("<defs>")
        for topic in Topic.allCases {
            let name = topic.rawValue
            out.line(
                "<marker id=\"to-\(name)\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"7\" "
                    + "markerHeight=\"7\" orient=\"auto\"><path class=\"f-\(name)\" d=\"M0 1L8 4L0 7z\"/></marker>")
        }
        out.line("</defs>")
        out.line("<rect class=\"paper\" width=\"\(width)\" height=\"\(height)\"/>")
        out.text(title, x: Layout.left, y: 26, "title")
        if !caption.isEmpty { out.text(caption, x: Layout.left, y: 44, "soft") }
        drawLegend(&out)
        drawTimes(plan, &out)
        drawLanes(plan, &out)
        for arrow in arrows { draw(arrow, plan, &out) }
        drawNames(plan, &out)
        drawMarks(plan, &out)
        out.line("</svg>")
        return out.document
    }

    // MARK: - Parts

    private func drawLegend(_ out: inout Pen) {
        var x = Layout.left
        for condition in Condition.allCases {
            out.path("M\(Figure.coordinate(x)) 64h26", "lane \(condition.rawValue)")
            out.text(condition.rawValue, x: x + 32, y: 68, "soft")
            x += 48 + 6.5 * Double(condition.rawValue.count)
        }
        x = Layout.left
        for topic in Topic.allCases {
            let name = topic.rawValue
            out.path("M\(Figure.coordinate(x)) 84h24", "arrow t-\(name)", "marker-end=\"url(#to-\(name))\"")
            out.text(name, x: x + 32, y: 88, "soft")
            x += 48 + 6.5 * Double(topic.rawValue.count)
        }
        x = Layout.left
        for sign in Sign.allCases {
            drawSign(sign, x: x + 6, y: 104, "", &out)
            out.text(sign.rawValue, x: x + 18, y: 108, "soft")
            x += 34 + 6.5 * Double(sign.rawValue.count)
        }
    }

    private func drawTimes(_ plan: Layout, _ out: inout Pen) {
        var last = -Double.infinity
        for place in plan.times.indices where plan.heights[place] - last >= Layout.timeGap {
            last = plan.heights[place]
            let y = Figure.coordinate(last)
            out.path("M\(Figure.coordinate(Layout.left - 8)) \(y)H\(Figure.coordinate(plan.width - 20))", "grid")
            out.text(
                "\(Figure.seconds(plan.times[place])) s", x: Layout.left - 14, y: last + 4, "time")
        }
    }

    private func drawLanes(_ plan: Layout, _ out: inout Pen) {
        for lane in lanes.indices {
            let x = Figure.coordinate(plan.x(lane))
            var (condition, top) = (Condition.down, Layout.top)
            func segment(to bottom: Double) {
                guard bottom > top else { return }
                out.path(
                    "M\(x) \(Figure.coordinate(top))V\(Figure.coordinate(bottom))", "lane \(condition.rawValue)")
            }
            for change in changes where change.lane == lane {
                let y = plan.y(change.time)
                segment(to: y)
                (condition, top) = (change.condition, max(top, y))
            }
            segment(to: plan.bottom)
            out.text(lanes[lane], x: plan.x(lane), y: Layout.top - 12, "name")
            out.text(lanes[lane], x: plan.x(lane), y: plan.bottom + 22, "name")
        }
    }

    private func draw(_ arrow: Arrow, _ plan: Layout, _ out: inout Pen) {
        let (fromX, fromY) = (plan.x(arrow.from), plan.y(arrow.sentAt))
        // A lost one ends between two lines, so that it does not seem to come anywhere.
        let toX = arrow.receivedAt == nil ? fromX + Layout.lostWay(arrow.to - arrow.from) : plan.x(arrow.to)
        let toY = arrow.receivedAt.map(plan.y) ?? fromY + Layout.lostFall
        let line =
            "M\(Figure.coordinate(fromX)) \(Figure.coordinate(fromY))"
            + "L\(Figure.coordinate(toX)) \(Figure.coordinate(toY))"
        let heard = arrow.receivedAt.map { ", heard \(Figure.seconds($0)) s" } ?? ", lost"
        let title =
            "\(arrow.name), \(lanes[arrow.from]) to \(lanes[arrow.to]): \(Figure.seconds(arrow.sentAt)) s\(heard)"
        let topic = arrow.topic.rawValue
        if arrow.receivedAt == nil {
            out.path(line, "arrow lost t-\(topic)", title: title)
            out.cross(toX, toY, "cross t-\(topic)")
        } else {
            out.path(line, "arrow t-\(topic)", "marker-end=\"url(#to-\(topic))\"", title: title)
        }
    }

    /// Names of messages, left of who sends them; where there is no room, the pointer tells.
    private func drawNames(_ plan: Layout, _ out: inout Pen) {
        var lastName = Array(repeating: -Double.infinity, count: lanes.count)
        for arrow in arrows {
            let y = plan.y(arrow.sentAt)
            guard y - lastName[arrow.from] >= Layout.nameHeight else { continue }
            lastName[arrow.from] = y
            out.text(arrow.name, x: plan.x(arrow.from) - 6, y: y + 3, "said f-\(arrow.topic.rawValue)")
        }
    }

    private func drawMarks(_ plan: Layout, _ out: inout Pen) {
        // Labels of one line do not cover each other: what comes too soon is moved down, or left to the pointer.
        var lastLabel = Array(repeating: -Double.infinity, count: lanes.count)
        for mark in marks {
            let (x, y) = (plan.x(mark.lane), plan.y(mark.time))
            if mark.sign == .violation {
                let (left, right) = (Figure.coordinate(Layout.left), Figure.coordinate(plan.width - 20))
                out.path("M\(left) \(Figure.coordinate(y))H\(right)", "violation")
                out.text(mark.text, x: Layout.left + 4, y: y + 14, "broken")
                continue
            }
            drawSign(mark.sign, x: x, y: y, "\(mark.text), \(lanes[mark.lane]), \(Figure.seconds(mark.time)) s", &out)
            guard mark.sign != .commit else { continue }
            let labelY = max(y + 4, lastLabel[mark.lane] + Layout.labelHeight)
            guard labelY - y < Layout.maxLabelShift else { continue }
            lastLabel[mark.lane] = labelY
            out.text(Layout.shortened(mark.text), x: x + 9, y: labelY, "label")
        }
    }

    private func drawSign(_ sign: Sign, x: Double, y: Double, _ title: String, _ out: inout Pen) {
        switch sign {
        case .commit: out.dot(x, y, 2.5, "mark commit", title)
        case .election: out.dot(x, y, 5, "mark election", title)
        case .start: out.dot(x, y, 4, "mark start", title)
        case .note: out.dot(x, y, 3, "mark note", title)
        case .crash: out.cross(x, y, "cross crash", title)
        case .abort: out.cross(x, y, "cross abort", title)
        case .violation: out.path("M\(Figure.coordinate(x - 6)) \(Figure.coordinate(y))h12", "violation")
        }
    }

    private static let style = """
        text{font:11px system-ui,sans-serif;fill:#1f2328}.title{font-size:16px;font-weight:600}\
        .name{font-size:12px;font-weight:600;text-anchor:middle}.soft{fill:#59636e}\
        .time{fill:#59636e;text-anchor:end;font-variant-numeric:tabular-nums}\
        .label{font-size:10px;paint-order:stroke;stroke:#fff;stroke-width:3px}\
        .said{font-size:8px;text-anchor:end;paint-order:stroke;stroke:#fff;stroke-width:2px}\
        .broken{fill:#b3161b;font-weight:600;paint-order:stroke;stroke:#fff;stroke-width:3px}\
        .paper{fill:#fff}path{fill:none}.grid{stroke:#eaedf0}\
        .lane{stroke:#8c959f;stroke-width:2}.lane.down{stroke-dasharray:1 6;stroke-width:1.5}\
        .lane.newcomer{stroke-dasharray:8 4}\
        .lane.candidate{stroke:#9a5700;stroke-width:4;stroke-dasharray:6 3}\
        .lane.master{stroke:#0a5cc2;stroke-width:5}\
        .arrow{stroke-width:1.1}.arrow:hover{stroke-width:3}.lost{stroke-dasharray:3 3}\
        .cross{stroke-width:1.5}\
        .t-vote{stroke:#0a5cc2}.t-election{stroke:#9a5700}.t-join{stroke:#6f3fc4}\
        .t-request{stroke:#1a7f37}.t-life{stroke:#afb8c1}\
        .f-vote{fill:#0a5cc2}.f-election{fill:#9a5700}.f-join{fill:#6f3fc4}\
        .f-request{fill:#1a7f37}.f-life{fill:#afb8c1}\
        .mark{fill:#59636e}.mark.commit{fill:#0a5cc2}.mark.election{fill:#9a5700}\
        .mark.start{fill:#fff;stroke:#1a7f37;stroke-width:2}\
        .cross.crash{stroke:#cf222e;stroke-width:3}.cross.abort{stroke:#9a5700;stroke-width:2.5}\
        .violation{stroke:#cf222e;stroke-width:2;stroke-dasharray:8 3}\
        @media(prefers-color-scheme:dark){text{fill:#e6edf3}.soft,.time{fill:#9198a1}.paper{fill:#0d1117}\
        .label,.said,.broken{stroke:#0d1117}.broken{fill:#ff7b72}.grid{stroke:#1c222b}.lane{stroke:#6e7681}\
        .lane.candidate{stroke:#e3a34a}.lane.master{stroke:#58a6ff}\
        .t-vote{stroke:#58a6ff}.t-election{stroke:#e3a34a}.t-join{stroke:#bc8cff}\
        .t-request{stroke:#56d364}.t-life{stroke:#484f58}\
        .f-vote{fill:#58a6ff}.f-election{fill:#e3a34a}.f-join{fill:#bc8cff}\
        .f-request{fill:#56d364}.f-life{fill:#484f58}\
        .mark{fill:#9198a1}.mark.commit{fill:#58a6ff}.mark.election{fill:#e3a34a}\
        .mark.start{fill:#0d1117;stroke:#56d364}.cross.crash,.violation{stroke:#ff7b72}\
        .cross.abort{stroke:#e3a34a}}
        """
}

/// Writes elements.
private struct Pen {
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
private struct Layout {
    static let left = 96.0
    static let top = 152.0
    static let laneGap = 190.0
    static let timeGap = 26.0
    static let labelHeight = 12.0
    static let nameHeight = 10.0
    /// A label further from its mark would be taken for another's.
    static let maxLabelShift = 40.0
    static let maxLabelLength = 30
    /// How far a lost message's arrow falls.
    static let lostFall = 8.0
    /// Between two times at which something happens: at least, at most, and for a millisecond.
    static let (minStep, maxStep, millisecond) = (2.5, 34.0, 1.5)

    /// At which something is drawn, in rising order.
    let times: [Instant]
    /// Where each of them stands.
    let heights: [Double]
    let width: Double
    let bottom: Double

    var height: Double { bottom + 40 }

    init(_ diagram: SpaceTimeDiagram) {
        var all = diagram.changes.map(\.time) + diagram.marks.map(\.time) + diagram.arrows.map(\.sentAt)
        all += diagram.arrows.compactMap(\.receivedAt)
        all.sort()
        var times: [Instant] = []
        var heights: [Double] = []
        for time in all where times.last != time {
            if let last = times.last, let height = heights.last {
                let gap = Double((time - last).nanoseconds) / 1_000_000 * Layout.millisecond
                heights.append(height + min(max(gap, Layout.minStep), Layout.maxStep))
            } else {
                heights.append(Layout.top + 14)
            }
            times.append(time)
        }
        self.times = times
        self.heights = heights
        width = max(Layout.left + Layout.laneGap * Double(diagram.lanes.count) + 20, 860)
        bottom = (heights.last ?? Layout.top) + 30
    }

    func x(_ lane: Int) -> Double { Layout.left + 60 + Layout.laneGap * Double(lane) }

    /// - Parameter time: one of `times`.
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

    static func shortened(_ text: String) -> String {
        text.count <= maxLabelLength ? text : text.prefix(maxLabelLength - 1) + "…"
    }
}
