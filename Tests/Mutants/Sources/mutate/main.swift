// Reads sources, and writes them again with all their mutants.
//
//     mutate SOURCES OUTPUT FOLDER…
//
// SOURCES is the folder that has the FOLDERs, such as TrackerLogic. OUTPUT gets them mutated, and `mutants.tsv` beside
// them: a line for each mutant, with its name, the number of its point and its own there, its kind, file, line and
// function, and what the source says and would say.

import Foundation
import SwiftOperators
import SwiftParser
import SwiftSyntax

func stop(_ text: String) -> Never {
    FileHandle.standardError.write(Data((text + "\n").utf8))
    exit(64)
}

/// What is not mutated, for it decides nothing: people read it, tests do, or the explorer; or it is what an operator
/// may choose.
let unmutated: Set<String> = [
    "TrackerLogic/Node/Account.swift", "TrackerLogic/Node/ClusterStatus.swift", "TrackerLogic/Node/Descriptions.swift",
    "TrackerLogic/Node/Fingerprint.swift", "TrackerLogic/Node/Inspection.swift", "TrackerLogic/Node/NodeAudit.swift",
    "TrackerLogic/Node/NodeConfiguration.swift", "TrackerLogic/Node/NodeStatus.swift",
    "TrackerLogic/PlantedBug.swift", "TrackerLogic/PlantedBugs.swift", "TrackerLogic/Record/RecordAudit.swift",
    "TrackerLogic/Swarms/SwarmListing.swift", "TrackerLogic/Swarms/TableAudit.swift",
    "PeerLogic/Pieces/PiecePicker+Views.swift", "PeerLogic/PlantedPeerBug.swift",
    "PeerLogic/Session/SessionAudit.swift", "PeerLogic/Session/TorrentSession+Views.swift",
]
/// The same, of whole folders: recordings are judged by whether they can be taken again.
let unmutatedFolders = ["TrackerLogic/Recording/"]

let arguments = CommandLine.arguments.dropFirst()
guard arguments.count >= 3 else { stop("mutate SOURCES OUTPUT FOLDER…") }
let (root, output) = (URL(filePath: arguments[1]), URL(filePath: arguments[2]))
let folders = arguments.dropFirst(2)

/// The files below a folder, in order of their names.
func sources(below folder: String) -> [String] {
    let names = FileManager.default.enumerator(atPath: root.appending(path: folder).path)?.compactMap { $0 as? String }
    return (names ?? []).filter { $0.hasSuffix(".swift") }.sorted().map { "\(folder)/\($0)" }
}

do {
    let facts = Facts(viewMode: .sourceAccurate)
    var trees: [(file: String, tree: SourceFileSyntax)] = []
    let known = sources(below: "Wire") + sources(below: "Primitives")
    for file in folders.flatMap(sources) + known {
        let text = try String(contentsOf: root.appending(path: file), encoding: .utf8)
        guard
            let tree = try OperatorTable.standardOperators.foldAll(Parser.parse(source: text)).as(SourceFileSyntax.self)
        else { stop("\(file): no source") }
        facts.read(tree)
        if !known.contains(file) { trees.append((file, tree)) }
    }
    guard !trees.isEmpty else { stop("no sources in \(root.path)") }
    var book = MutantBook()
    for (file, tree) in trees {
        let mutator = Mutator(file: file, tree: tree, facts: facts, book: book)
        let isLeft = unmutated.contains(file) || unmutatedFolders.contains { file.hasPrefix($0) }
        let text = isLeft ? tree.description : "import Mutation\n" + mutator.rewrite(tree).description
        book = mutator.book
        let target = output.appending(path: file)
        try FileManager.default.createDirectory(
            at: target.deletingLastPathComponent(), withIntermediateDirectories: true)
        // What is as it was stays, so that it is not compiled again.
        if (try? String(contentsOf: target, encoding: .utf8)) != text {
            try text.write(to: target, atomically: true, encoding: .utf8)
        }
    }
    guard book.points <= MutantBook.limit else { stop("\(book.points) points are more than \(MutantBook.limit)") }
    let list = book.mutants.map(\.listed).joined(separator: "\n") + "\n"
    try list.write(to: output.appending(path: "mutants.tsv"), atomically: true, encoding: .utf8)
    print("\(book.mutants.count) mutants at \(book.points) points of \(trees.count - unmutated.count) files")
} catch {
    stop("\(error)")
}
