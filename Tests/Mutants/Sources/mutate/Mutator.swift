// Writes a source again so that each mistake that could be made in it is a choice.

import SwiftSyntax

/// Writes a source again so that each mistake that could be made in it is a choice.
///
/// What stands at a point becomes a call (of `Judge/Sources/Mutation`) that says what it said, or what the mutant that
/// is alive says. No operand is written twice, so points may stand within each other, and the text grows with their
/// number only.
///
/// Left as it is: what is compiled with planted mistakes only, and questions for them (`has`); patterns; attributes;
/// texts; preconditions, which trap for our own mistakes; assignments in initializers and to what has no value yet;
/// room that is made ahead, or kept; moments that differ by a nanosecond; what the explorer tells states apart by.
final class Mutator: SyntaxRewriter {
    private let file: String
    private let converter: SourceLocationConverter
    private let facts: Facts
    private(set) var book: MutantBook

    init(file: String, tree: SourceFileSyntax, facts: Facts, book: MutantBook) {
        self.file = file
        self.facts = facts
        self.book = book
        converter = SourceLocationConverter(fileName: file, tree: tree)
        super.init(viewMode: .sourceAccurate)
    }

    /// Makes a point of a node.
    private func point(_ kind: Operator, at node: some SyntaxProtocol, _ before: String, _ afters: String...) -> Int {
        book.add(
            kind, file: file, line: converter.location(for: node.positionAfterSkippingLeadingTrivia).line,
            place: Syntax(node).placeName, before: before, afters: afters)
    }

    /// A text in the place of an expression, with the spaces and comments around that.
    private func text(_ text: String, for node: some ExprSyntaxProtocol) -> ExprSyntax {
        ExprSyntax(
            DeclReferenceExprSyntax(
                baseName: .identifier(text, leadingTrivia: node.leadingTrivia, trailingTrivia: node.trailingTrivia)))
    }

    // MARK: What is left alone

    override func visit(_ node: AttributeSyntax) -> AttributeSyntax { node }
    override func visit(_ node: ExpressionPatternSyntax) -> PatternSyntax { PatternSyntax(node) }
    override func visit(_ node: GenericArgumentSyntax) -> GenericArgumentSyntax { node }
    override func visit(_ node: StringLiteralExprSyntax) -> ExprSyntax { ExprSyntax(node) }
    override func visit(_ node: EnumCaseDeclSyntax) -> DeclSyntax { DeclSyntax(node) }
    override func visit(_ node: MacroExpansionExprSyntax) -> ExprSyntax { ExprSyntax(node) }

    override func visit(_ node: IfConfigDeclSyntax) -> DeclSyntax { DeclSyntax(node) }

    /// Whether it asks for a planted mistake.
    private func asksForPlanted(_ node: ExprSyntax) -> Bool {
        if let not = node.as(PrefixOperatorExprSyntax.self) { return asksForPlanted(not.expression) }
        guard let call = node.as(FunctionCallExprSyntax.self) else { return false }
        let name = call.calledExpression.trimmedDescription
        return name == "has" || name.hasSuffix(".has") || name == "hasLease"
    }

    private func isAboutPlanted(_ node: ConditionElementListSyntax) -> Bool {
        node.contains { $0.condition.as(ExprSyntax.self).map { mentionsPlanted($0) } ?? false }
    }

    private func mentionsPlanted(_ node: ExprSyntax) -> Bool {
        if asksForPlanted(node) { return true }
        guard let infix = node.as(InfixOperatorExprSyntax.self) else { return false }
        return infix.operator.trimmedDescription == "&&"
            && (mentionsPlanted(infix.leftOperand) || mentionsPlanted(infix.rightOperand))
    }

    /// What is done only for a planted mistake.
    override func visit(_ node: IfExprSyntax) -> ExprSyntax {
        isAboutPlanted(node.conditions) && !hasNegatedQuestion(node.conditions)
            ? ExprSyntax(node) : super.visit(node)
    }

    private func hasNegatedQuestion(_ node: ConditionElementListSyntax) -> Bool {
        node.contains { $0.trimmedDescription.contains("!has(") }
    }

    // MARK: Conditions

    override func visit(_ node: InfixOperatorExprSyntax) -> ExprSyntax {
        guard let sign = node.operator.as(BinaryOperatorExprSyntax.self)?.operator.text else {
            return super.visit(node)
        }
        switch sign {
        case "&&", "||": return connected(node, sign)
        case "<", "<=", ">", ">=", "==", "!=": return related(node, sign)
        default: return super.visit(node)
        }
    }

    private func connected(_ node: InfixOperatorExprSyntax, _ sign: String) -> ExprSyntax {
        if asksForPlanted(node.leftOperand) || asksForPlanted(node.rightOperand) { return super.visit(node) }
        let (before, left, right) = (
            node.trimmedDescription, node.leftOperand.trimmedDescription, node.rightOperand.trimmedDescription
        )
        let number = point(.side, at: node.operator, before, right, left)
        let name = sign == "&&" ? "and" : "or"
        return text(
            "Mutation.\(name)(\(number), \(leaf(node.leftOperand)), \(leaf(node.rightOperand)))", for: node)
    }

    /// A part of a condition, which has its opposite for a mutant where no operator of its own gives one.
    private func leaf(_ node: ExprSyntax) -> String {
        let rewritten = rewrite(Syntax(node)).trimmedDescription
        guard isLeaf(node) else { return rewritten }
        let before = node.trimmedDescription
        return "Mutation.condition(\(point(.negation, at: node, before, "!(\(before))")), \(rewritten))"
    }

    private func isLeaf(_ node: ExprSyntax) -> Bool {
        if asksForPlanted(node) || node.is(BooleanLiteralExprSyntax.self) { return false }
        if let tuple = node.as(TupleExprSyntax.self), tuple.elements.count == 1, let only = tuple.elements.first {
            return isLeaf(only.expression)
        }
        guard let infix = node.as(InfixOperatorExprSyntax.self) else { return true }
        let sign = infix.operator.trimmedDescription
        return !["&&", "||"].contains(sign) && Self.relations[sign] == nil
    }

    private static let relations: [String: (name: String, afters: [String])] = [
        "<": ("isLess", ["<=", ">="]), "<=": ("isLessOrEqual", ["<", ">"]),
        ">": ("isGreater", [">=", "<="]), ">=": ("isGreaterOrEqual", [">", "<"]),
        "==": ("isEqual", ["!="]), "!=": ("isUnequal", ["=="]),
    ]

    private func related(_ node: InfixOperatorExprSyntax, _ sign: String) -> ExprSyntax {
        guard let relation = Self.relations[sign], !node.leftOperand.isSeveral, !node.rightOperand.isSeveral else {
            return super.visit(node)
        }
        let (left, right) = (node.leftOperand.trimmedDescription, node.rightOperand.trimmedDescription)
        let number = book.add(
            .relation, file: file, line: converter.location(for: node.operator.positionAfterSkippingLeadingTrivia).line,
            place: Syntax(node).placeName, before: "\(left) \(sign) \(right)",
            afters: relation.afters.map { "\(left) \($0) \(right)" },
            first: relation.afters.count > 1 && isOfTimes(node) ? 1 : 0)
        let (a, b) = (
            rewrite(Syntax(node.leftOperand)).trimmedDescription, rewrite(Syntax(node.rightOperand)).trimmedDescription
        )
        if node.rightOperand.is(NilLiteralExprSyntax.self) {
            return text("Mutation.\(sign == "==" ? "isNil" : "isThere")(\(number), \(a))", for: node)
        }
        if node.leftOperand.is(NilLiteralExprSyntax.self) {
            return text("Mutation.\(sign == "==" ? "isNil" : "isThere")(\(number), \(b))", for: node)
        }
        return text("Mutation.\(relation.name)(\(number), \(a), \(b))", for: node)
    }

    /// Whether it compares moments: whether they are the same nobody promises to the nanosecond.
    private func isOfTimes(_ node: InfixOperatorExprSyntax) -> Bool {
        [node.leftOperand, node.rightOperand].contains { side in
            side.tokens(viewMode: .sourceAccurate).contains { $0.text == "now" }
        }
    }

    override func visit(_ node: ConditionElementSyntax) -> ConditionElementSyntax {
        if let condition = node.condition.as(ExprSyntax.self), asksForRoom(condition) { return node }
        guard let condition = node.condition.as(ExprSyntax.self), !mentionsPlanted(condition),
            let list = node.parent?.as(ConditionElementListSyntax.self), let owner = list.parent
        else { return super.visit(node) }
        let (inner, before) = (leaf(condition), condition.trimmedDescription)
        let outer: String
        if owner.is(IfExprSyntax.self), list.count == 1 {
            outer = "Mutation.whole(\(point(.condition, at: node, before, "true", "false")), \(inner))"
        } else if owner.is(WhileStmtSyntax.self) {
            outer = inner
        } else {
            outer = "Mutation.part(\(point(.condition, at: node, before, "true")), \(inner))"
        }
        var node = node
        node.condition = .expression(text(outer, for: condition))
        return node
    }

    override func visit(_ node: WhereClauseSyntax) -> WhereClauseSyntax {
        if mentionsPlanted(node.condition) { return super.visit(node) }
        let before = node.condition.trimmedDescription
        let inner = leaf(node.condition)
        var node = node
        node.condition = text(
            "Mutation.part(\(point(.condition, at: node.condition, before, "true")), \(inner))", for: node.condition)
        return node
    }

    override func visit(_ node: TernaryExprSyntax) -> ExprSyntax {
        guard !mentionsPlanted(node.condition) else { return super.visit(node) }
        let condition = leaf(node.condition)
        var new = node
        new.condition = text(condition, for: node.condition)
        new.thenExpression = ExprSyntax(rewrite(Syntax(node.thenExpression))) ?? node.thenExpression
        new.elseExpression = ExprSyntax(rewrite(Syntax(node.elseExpression))) ?? node.elseExpression
        return ExprSyntax(new)
    }

    // MARK: Values

    /// Whether it says only how much room there is, or that it is kept; or a moment to the nanosecond.
    private func decidesNothing(_ node: some ExprSyntaxProtocol) -> Bool {
        guard let argument = node.parent?.as(LabeledExprSyntax.self), let label = argument.label?.text else {
            return false
        }
        let call = Syntax(argument).around(FunctionCallExprSyntax.self)?.calledExpression.trimmedDescription
        return label.lowercased().hasSuffix("capacity") || call == "Instant" && label == "nanoseconds"
    }

    /// Whether it asks how much room there is: only whether more is made, or some given back, hangs on that.
    private func asksForRoom(_ node: ExprSyntax) -> Bool {
        guard let sign = node.as(InfixOperatorExprSyntax.self)?.operator, Self.relations[sign.trimmedDescription] != nil
        else { return false }
        let words = node.tokens(viewMode: .sourceAccurate).map(\.text)
        return zip(words, words.dropFirst()).enumerated().contains { place, pair in
            pair == (".", "capacity") && (place + 2 >= words.count || words[place + 2] != "(")
        }
    }

    override func visit(_ node: IntegerLiteralExprSyntax) -> ExprSyntax {
        if decidesNothing(node) { return ExprSyntax(node) }
        let digits = node.literal.text
        // A number of many digits is how much room there is, how long something takes, or a mixer of bits: one more of
        // it is nobody's mistake.
        guard digits.count <= (digits.hasPrefix("0x") ? 4 : 3) else { return ExprSyntax(node) }
        let number = point(.constant, at: node, digits, "\(digits) + 1", "\(digits) - 1")
        return text("Mutation.number(\(number), \(digits))", for: node)
    }

    override func visit(_ node: BooleanLiteralExprSyntax) -> ExprSyntax {
        if decidesNothing(node) { return ExprSyntax(node) }
        let word = node.literal.text
        let number = point(.constant, at: node, word, word == "true" ? "false" : "true")
        return text("Mutation.truth(\(number), \(word))", for: node)
    }

    override func visit(_ node: MemberAccessExprSyntax) -> ExprSyntax {
        guard node.base == nil, node.parent?.as(FunctionCallExprSyntax.self)?.calledExpression.id != node.id,
            node.parent?.is(MemberAccessExprSyntax.self) != true,
            let other = facts.exchange(of: node.declName.baseName.text)
        else { return super.visit(node) }
        let before = node.trimmedDescription
        let number = point(.case, at: node, before, ".\(other)")
        return text("Mutation.choice(\(number), \(before), .\(other))", for: node)
    }

    override func visit(_ node: FunctionCallExprSyntax) -> ExprSyntax {
        let name = node.calledExpression.trimmedDescription
        if name.hasSuffix("reserveCapacity") { return ExprSyntax(node) }
        switch name {
        case "precondition", "preconditionFailure", "fatalError", "has", "configuration.has": return ExprSyntax(node)
        case "min", "max":
            guard node.arguments.count == 2, node.arguments.allSatisfy({ $0.label == nil }) else { break }
            let parts = node.arguments.map { rewrite(Syntax($0.expression)).trimmedDescription }
            let before = node.trimmedDescription
            let number = point(.extreme, at: node, before, (name == "min" ? "max" : "min") + before.dropFirst(3))
            let function = name == "min" ? "least" : "greatest"
            return text("Mutation.\(function)(\(number), \(parts[0]), \(parts[1]))", for: node)
        default: break
        }
        guard let pair = exchangeable(node) else { return super.visit(node) }
        guard let call = super.visit(node).as(FunctionCallExprSyntax.self) else { return super.visit(node) }
        return ExprSyntax(exchange(pair, of: node, in: call))
    }

    /// The first two neighbouring arguments of one type that are plain names and differ.
    private func exchangeable(_ node: FunctionCallExprSyntax) -> Int? {
        let called: String
        if let reference = node.calledExpression.as(DeclReferenceExprSyntax.self) {
            called = reference.baseName.text
        } else if let member = node.calledExpression.as(MemberAccessExprSyntax.self) {
            called = member.declName.baseName.text
        } else {
            return nil
        }
        let arguments = Array(node.arguments)
        guard arguments.count >= 2 else { return nil }
        let key = Facts.key(called, arguments.map { $0.label?.text ?? "_" })
        guard let types = facts.types(of: key), types.count == arguments.count else { return nil }
        return arguments.indices.dropLast().first { place in
            let (a, b) = (arguments[place].expression, arguments[place + 1].expression)
            return types[place] == types[place + 1] && !types[place].hasPrefix("inout") && a.isPlain && b.isPlain
                && a.trimmedDescription != b.trimmedDescription
        }
    }

    private func exchange(
        _ place: Int, of node: FunctionCallExprSyntax, in call: FunctionCallExprSyntax
    ) -> FunctionCallExprSyntax {
        var (call, arguments) = (call, Array(call.arguments))
        let texts = node.arguments.map { $0.expression.trimmedDescription }
        let (a, b) = (texts[place], texts[place + 1])
        let number = point(.swap, at: node, "\(a), \(b)", "\(b), \(a)")
        arguments[place].expression = text(
            "Mutation.swapped(\(number), \(a), \(b))", for: arguments[place].expression)
        arguments[place + 1].expression = text(
            "Mutation.swapped(\(number), \(b), \(a))", for: arguments[place + 1].expression)
        call.arguments = LabeledExprListSyntax(arguments)
        return call
    }

    // MARK: Statements

    override func visit(_ node: CodeBlockItemSyntax) -> CodeBlockItemSyntax {
        guard case .expr(let expression) = node.item, let before = omissible(expression), !node.isImplicitResult else {
            return super.visit(node)
        }
        let number = point(.statement, at: node, before, "")
        let inner = super.visit(node)
        var new = node
        new.item = .expr(
            text("if Mutation.isKept(\(number)) { \(inner.item.trimmedDescription) }", for: expression))
        return new
    }

    /// What a statement says that could be left out.
    private func omissible(_ expression: ExprSyntax) -> String? {
        var core = expression
        if let attempt = core.as(TryExprSyntax.self) { core = attempt.expression }
        let before = expression.trimmedDescription
        if let call = core.as(FunctionCallExprSyntax.self) {
            let name = call.calledExpression.trimmedDescription
            let kept = ["precondition", "preconditionFailure", "fatalError", "self.init"]
            let isKept = kept.contains(name) || name.hasSuffix("reserveCapacity") || name.hasPrefix("planted")
            return isKept ? nil : before
        }
        guard let infix = core.as(InfixOperatorExprSyntax.self) else { return nil }
        let sign = infix.operator.trimmedDescription
        guard sign == "=" || sign.hasSuffix("=") && Self.relations[sign] == nil else { return nil }
        if sign == "=", Syntax(core).isInInitializer { return nil }
        if sign == "=", let name = infix.leftOperand.as(DeclReferenceExprSyntax.self)?.baseName.text,
            isDeclaredWithoutValue(name, around: Syntax(core))
        {
            return nil
        }
        if sign == "=", infix.leftOperand.is(DiscardAssignmentExprSyntax.self) { return nil }
        return before
    }

    /// Whether a variable of the function around has no value where it is declared.
    private func isDeclaredWithoutValue(_ name: String, around node: Syntax) -> Bool {
        var root = node
        while let parent = root.parent, !root.is(FunctionDeclSyntax.self), !root.is(InitializerDeclSyntax.self) {
            root = parent
        }
        return Valueless(name: name).finds(in: root)
    }

    // MARK: Functions

    /// By these the explorer tells states apart, recordings are kept, tests see that nothing is to be done, and room is
    /// given back: nothing decides by them.
    private static let undecisive: Set<String> = [
        "absorb", "absorbPauses", "walk", "isNothing", "giveBackRoom", "isSparse", "snapshotCapacity",
    ]

    override func visit(_ node: VariableDeclSyntax) -> DeclSyntax {
        let names = node.bindings.map(\.pattern.trimmedDescription)
        return names.contains { Self.undecisive.contains($0) } ? DeclSyntax(node) : super.visit(node)
    }

    override func visit(_ node: FunctionDeclSyntax) -> DeclSyntax {
        if Self.undecisive.contains(node.name.text) { return DeclSyntax(node) }
        guard let body = node.body, let item = body.statements.first else { return super.visit(node) }
        let result = node.signature.result
        // A function of one statement does nothing without it, which is a mutant of its own.
        let isSingle = body.statements.count == 1
        let isExpression = item.item.is(ExprSyntax.self)
        if isSingle, result == nil, isExpression { return super.visit(node) }
        if isSingle, result != nil, !isExpression, !item.item.is(ReturnStmtSyntax.self) { return super.visit(node) }
        let entry: String
        switch result {
        case nil:
            entry = "if Mutation.goesBack(\(point(.return, at: node.name, node.name.text, "return"))) { return }"
        case "Bool":
            let number = point(.return, at: node.name, node.name.text, "return true", "return false")
            entry = "if let answer = Mutation.answer(\(number)) { return answer }"
        case .some(let type) where type.hasSuffix("?"):
            entry =
                "if Mutation.goesBack(\(point(.return, at: node.name, node.name.text, "return nil"))) { return nil }"
        default: return super.visit(node)
        }
        guard var new = super.visit(node).as(FunctionDeclSyntax.self), var block = new.body else {
            return super.visit(node)
        }
        let needsReturn = isSingle && isExpression && result != nil
        let first = block.statements.trimmedDescription
        let text = entry + "\n" + (needsReturn ? "return " : "") + first
        block.statements = CodeBlockItemListSyntax([
            CodeBlockItemSyntax(
                leadingTrivia: .newline,
                item: .expr(ExprSyntax(DeclReferenceExprSyntax(baseName: .identifier(text)))),
                trailingTrivia: .newline)
        ])
        new.body = block
        return DeclSyntax(new)
    }
}
