// Draws a space-time diagram as SVG.

import Primitives

extension SpaceTimeDiagram {
    /// The document.
    public func svg() -> String {
        let plan = DiagramLayout(self)
        let (width, height) = (Figure.coordinate(plan.width), Figure.coordinate(plan.height))
        var out = SVGPen()
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
        out.text(title, x: DiagramLayout.left, y: 26, "title")
        if !caption.isEmpty { out.text(caption, x: DiagramLayout.left, y: 44, "soft") }
        drawLegend(&out)
        drawTimes(plan, &out)
        drawSpans(plan, &out)
        drawLanes(plan, &out)
        for arrow in arrows { draw(arrow, plan, &out) }
        drawNames(plan, &out)
        drawMarks(plan, &out)
        drawFoot(plan, &out)
        out.line("</svg>")
        return out.document
    }

    // MARK: - Parts

    private func drawLegend(_ out: inout SVGPen) {
        var x = DiagramLayout.left
        for condition in Condition.allCases {
            out.path("M\(Figure.coordinate(x)) 64h26", "lane \(condition.rawValue)")
            out.text(condition.rawValue, x: x + 32, y: 68, "soft")
            x += 48 + 6.5 * Double(condition.rawValue.count)
        }
        x = DiagramLayout.left
        for topic in Topic.allCases {
            let name = topic.rawValue
            out.path("M\(Figure.coordinate(x)) 84h24", "arrow t-\(name)", "marker-end=\"url(#to-\(name))\"")
            out.text(name, x: x + 32, y: 88, "soft")
            x += 48 + 6.5 * Double(topic.rawValue.count)
        }
        x = DiagramLayout.left
        for sign in Sign.allCases {
            drawSign(sign, x: x + 6, y: 104, "", &out)
            out.text(sign.rawValue, x: x + 18, y: 108, "soft")
            x += 34 + 6.5 * Double(sign.rawValue.count)
        }
        x = DiagramLayout.left
        for trouble in Trouble.allCases {
            out.box(x, 117, 12, 10, "bar \(trouble.rawValue)", "")
            out.text(trouble.rawValue, x: x + 18, y: 127, "soft")
            x += 34 + 6.5 * Double(trouble.rawValue.count)
        }
    }

    /// What was wrong for a while: bars on the right, with words, and bands beside the lines.
    private func drawSpans(_ plan: DiagramLayout, _ out: inout SVGPen) {
        var lastLabel = -Double.infinity
        for (place, span) in spans.enumerated() {
            let (top, bottom) = (plan.y(span.from), span.until.map(plan.y) ?? plan.bottom)
            let height = max(bottom - top, 2)
            let times = "\(Figure.seconds(span.from)) s to \(span.until.map { "\(Figure.seconds($0)) s" } ?? "the end")"
            let (title, style) = ("\(span.text), \(times)", span.trouble.rawValue)
            if span.trouble.isOfLanes {
                for lane in span.lanes {
                    let half = SpaceTimeDiagram.bandWidth(span.trouble) / 2
                    out.box(plan.x(lane) - half, top, 2 * half, height, "band \(style)", title)
                }
            }
            let x = plan.barX(plan.columns[place])
            if span.trouble == .partition {
                for y in [top, bottom] {
                    let line = Figure.coordinate(y)
                    out.path(
                        "M\(Figure.coordinate(DiagramLayout.left)) \(line)H\(Figure.coordinate(x))", "edge \(style)")
                }
            }
            out.box(x, top, DiagramLayout.barWidth, height, "bar \(style)", title)
            let labelY = max(top + 8, lastLabel + DiagramLayout.labelHeight)
            guard labelY - top < DiagramLayout.maxBarLabelShift else { continue }
            lastLabel = labelY
            out.path(
                "M\(Figure.coordinate(x + DiagramLayout.barWidth)) \(Figure.coordinate(top + 1))"
                    + "L\(Figure.coordinate(plan.barTextX - 3)) \(Figure.coordinate(labelY - 3))", "grid")
            out.text(
                DiagramLayout.shortened(span.text, to: DiagramLayout.maxBarTextLength), x: plan.barTextX, y: labelY,
                "label")
        }
    }

    /// Bands of different troubles of one line lie within each other.
    private static func bandWidth(_ trouble: Trouble) -> Double {
        switch trouble {
        case .fence: 26
        case .pause: 20
        case .darkness: 16
        case .disk: 12
        case .partition: 0
        }
    }

    private func drawFoot(_ plan: DiagramLayout, _ out: inout SVGPen) {
        for (place, line) in plan.foot.enumerated() {
            let y = plan.bottom + 48 + DiagramLayout.footHeight * Double(place)
            out.text(line.text, x: 20, y: y, line.style)
        }
    }

    private func drawTimes(_ plan: DiagramLayout, _ out: inout SVGPen) {
        var last = -Double.infinity
        for place in plan.times.indices where plan.heights[place] - last >= DiagramLayout.timeGap {
            last = plan.heights[place]
            let y = Figure.coordinate(last)
            out.path("M\(Figure.coordinate(DiagramLayout.left - 8)) \(y)H\(Figure.coordinate(plan.width - 20))", "grid")
            out.text(
                "\(Figure.seconds(plan.times[place])) s", x: DiagramLayout.left - 14, y: last + 4, "time")
        }
    }

    private func drawLanes(_ plan: DiagramLayout, _ out: inout SVGPen) {
        for lane in lanes.indices {
            let x = Figure.coordinate(plan.x(lane))
            var (condition, top) = (Condition.down, DiagramLayout.top)
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
            out.text(lanes[lane], x: plan.x(lane), y: DiagramLayout.top - 12, "name")
            out.text(lanes[lane], x: plan.x(lane), y: plan.bottom + 22, "name")
        }
    }

    private func draw(_ arrow: Arrow, _ plan: DiagramLayout, _ out: inout SVGPen) {
        let (fromX, fromY) = (plan.x(arrow.from), plan.y(arrow.sentAt))
        // A lost one ends between two lines, so that it does not seem to come anywhere.
        let toX = arrow.receivedAt == nil ? fromX + DiagramLayout.lostWay(arrow.to - arrow.from) : plan.x(arrow.to)
        let toY = arrow.receivedAt.map(plan.y) ?? fromY + DiagramLayout.lostFall
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
    private func drawNames(_ plan: DiagramLayout, _ out: inout SVGPen) {
        var lastName = Array(repeating: -Double.infinity, count: lanes.count)
        for arrow in arrows {
            let y = plan.y(arrow.sentAt)
            guard y - lastName[arrow.from] >= DiagramLayout.nameHeight else { continue }
            lastName[arrow.from] = y
            out.text(arrow.name, x: plan.x(arrow.from) - 6, y: y + 3, "said f-\(arrow.topic.rawValue)")
        }
    }

    private func drawMarks(_ plan: DiagramLayout, _ out: inout SVGPen) {
        // Labels of one line do not cover each other: what comes too soon is moved down, or left to the pointer.
        var lastLabel = Array(repeating: -Double.infinity, count: lanes.count)
        for mark in marks {
            let (x, y) = (plan.x(mark.lane), plan.y(mark.time))
            if mark.sign == .violation {
                let (left, right) = (Figure.coordinate(DiagramLayout.left), Figure.coordinate(plan.width - 20))
                out.path("M\(left) \(Figure.coordinate(y))H\(right)", "violation", title: mark.text)
                continue
            }
            drawSign(mark.sign, x: x, y: y, "\(mark.text), \(lanes[mark.lane]), \(Figure.seconds(mark.time)) s", &out)
            guard mark.sign != .commit else { continue }
            let labelY = max(y + 4, lastLabel[mark.lane] + DiagramLayout.labelHeight)
            guard labelY - y < DiagramLayout.maxLabelShift else { continue }
            lastLabel[mark.lane] = labelY
            out.text(DiagramLayout.shortened(mark.text), x: x + 9, y: labelY, "label")
        }
    }

    private func drawSign(_ sign: Sign, x: Double, y: Double, _ title: String, _ out: inout SVGPen) {
        switch sign {
        case .commit: out.dot(x, y, 2.5, "mark commit", title)
        case .election: out.dot(x, y, 5, "mark election", title)
        case .start: out.dot(x, y, 4, "mark start", title)
        case .note: out.dot(x, y, 3, "mark note", title)
        case .fault: out.dot(x, y, 4, "mark fault", title)
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
        .bar.partition,.edge.partition,.band.partition{fill:#d4531a;stroke:#d4531a}.edge{stroke-dasharray:2 4}\
        .bar.fence,.band.fence{fill:#cf222e}.bar.pause,.band.pause{fill:#7d8590}\
        .bar.darkness,.band.darkness{fill:#d4a017}.bar.disk,.band.disk{fill:#6f3fc4}.band{opacity:.22}\
        .mark.fault{fill:#d4531a}.note{fill:#59636e}\
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
        .cross.abort{stroke:#e3a34a}.note{fill:#9198a1}.band{opacity:.35}}
        """
}
