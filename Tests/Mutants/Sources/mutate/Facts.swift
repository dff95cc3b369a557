// What has to be known of all sources before one of them can be mutated.

import SwiftSyntax

/// What has to be known of all sources before one of them can be mutated: enumerations and signatures.
final class Facts: SyntaxVisitor {
    /// Enumerations' cases without values, by the names of the enumerations.
    private var plainCases: [String: [String]] = [:]
    /// How many enumerations, static members and cases with values have a name.
    private var owners: [String: Set<String>] = [:]
    /// Types of parameters, by the names and labels of functions; none where two differ.
    private var signatures: [String: [String]] = [:]

    /// Reads one more source.
    func read(_ source: SourceFileSyntax) { walk(source) }

    /// Another case of the only enumeration that has this one.
    func exchange(of name: String) -> String? {
        guard let found = owners[name], found.count == 1, let owner = found.first, let cases = plainCases[owner],
            let place = cases.firstIndex(of: name), cases.count > 1
        else { return nil }
        return cases[(place + 1) % cases.count]
    }

    /// The types of what a call takes; nil where nothing is known, or two functions of the name differ.
    func types(of call: String) -> [String]? {
        guard let types = signatures[call], !types.isEmpty else { return nil }
        return types
    }

    override func visit(_ node: IfConfigDeclSyntax) -> SyntaxVisitorContinueKind { .skipChildren }

    override func visit(_ node: EnumDeclSyntax) -> SyntaxVisitorContinueKind {
        if node.name.text.hasPrefix("Planted") { return .skipChildren }
        // One name may be that of several nested types; each counts for itself.
        let owner = "\(node.name.text)@\(node.position.utf8Offset)"
        for member in node.memberBlock.members {
            guard let line = member.decl.as(EnumCaseDeclSyntax.self) else { continue }
            for element in line.elements {
                let name = element.name.text
                owners[name, default: []].insert(owner)
                if element.parameterClause == nil { plainCases[owner, default: []].append(name) }
            }
        }
        return .visitChildren
    }

    override func visit(_ node: VariableDeclSyntax) -> SyntaxVisitorContinueKind {
        guard node.modifiers.contains(where: { $0.name.text == "static" }) else { return .visitChildren }
        for binding in node.bindings {
            owners[binding.pattern.trimmedDescription, default: []].insert("static@\(node.position.utf8Offset)")
        }
        return .visitChildren
    }

    override func visit(_ node: FunctionDeclSyntax) -> SyntaxVisitorContinueKind {
        if node.modifiers.contains(where: { $0.name.text == "static" }) {
            owners[node.name.text, default: []].insert("static@\(node.position.utf8Offset)")
        }
        note(node.name.text, node.signature.parameterClause)
        return .visitChildren
    }

    override func visit(_ node: InitializerDeclSyntax) -> SyntaxVisitorContinueKind {
        if let owner = typeName(around: Syntax(node)) { note(owner, node.signature.parameterClause) }
        return .visitChildren
    }

    override func visit(_ node: StructDeclSyntax) -> SyntaxVisitorContinueKind {
        let hasInitializer = node.memberBlock.members.contains { $0.decl.is(InitializerDeclSyntax.self) }
        if !hasInitializer { noteMemberwise(node) }
        return .visitChildren
    }

    private func noteMemberwise(_ node: StructDeclSyntax) {
        var (labels, types): ([String], [String]) = ([], [])
        for member in node.memberBlock.members {
            guard let line = member.decl.as(VariableDeclSyntax.self),
                !line.modifiers.contains(where: { $0.name.text == "static" })
            else { continue }
            for binding in line.bindings where binding.accessorBlock == nil {
                guard let type = binding.typeAnnotation?.type.trimmedDescription else { continue }
                labels.append(binding.pattern.trimmedDescription)
                types.append(type)
            }
        }
        note(node.name.text, labels, types)
    }

    private func note(_ name: String, _ clause: FunctionParameterClauseSyntax) {
        let labels = clause.parameters.map { $0.firstName.text }
        note(name, labels, clause.parameters.map { $0.type.trimmedDescription })
    }

    private func note(_ name: String, _ labels: [String], _ types: [String]) {
        let key = Self.key(name, labels)
        signatures[key] = signatures[key].map { $0 == types ? types : [] } ?? types
    }

    /// How a function is found by what a call says.
    static func key(_ name: String, _ labels: [String]) -> String {
        name + "(" + labels.map { $0 + ":" }.joined() + ")"
    }

    private func typeName(around node: Syntax) -> String? {
        var node = node.parent
        while let here = node {
            if let type = here.as(StructDeclSyntax.self) { return type.name.text }
            if let type = here.as(EnumDeclSyntax.self) { return type.name.text }
            if let type = here.as(ClassDeclSyntax.self) { return type.name.text }
            if let type = here.as(ExtensionDeclSyntax.self) { return type.extendedType.trimmedDescription }
            node = here.parent
        }
        return nil
    }
}
