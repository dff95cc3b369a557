// Where in a source something stands: what may be left out there, and what it is called.

import SwiftSyntax

extension Syntax {
    /// The nearest of these kinds around it.
    func around<T: SyntaxProtocol>(_ kind: T.Type) -> T? {
        var node = parent
        while let here = node {
            if let found = here.as(kind) { return found }
            node = here.parent
        }
        return nil
    }

    /// The function, the initializer or the property that it is in, with the types around, such as `Office.depose`.
    var placeName: String {
        var names: [String] = []
        var node: Syntax? = self
        while let here = node {
            if let function = here.as(FunctionDeclSyntax.self) {
                let labels = function.signature.parameterClause.parameters.map { $0.firstName.text + ":" }
                names.append("\(function.name.text)(\(labels.joined()))")
            } else if let initializer = here.as(InitializerDeclSyntax.self) {
                let labels = initializer.signature.parameterClause.parameters.map { $0.firstName.text + ":" }
                names.append("init(\(labels.joined()))")
            } else if here.is(SubscriptDeclSyntax.self) {
                names.append("subscript")
            } else if let property = here.as(VariableDeclSyntax.self), property.isMember {
                names.append(property.bindings.first?.pattern.trimmedDescription ?? "_")
            } else if let type = here.asProtocol((any NamedDeclSyntax).self),
                here.is(StructDeclSyntax.self)
                    || here.is(EnumDeclSyntax.self) || here.is(ClassDeclSyntax.self)
            {
                names.append(type.name.text)
            } else if let type = here.as(ExtensionDeclSyntax.self) {
                names.append(type.extendedType.trimmedDescription)
            }
            node = here.parent
        }
        return names.reversed().joined(separator: ".")
    }

    /// Whether it is in an initializer, not in a closure or function of its own there.
    var isInInitializer: Bool {
        var node = parent
        while let here = node {
            if here.is(FunctionDeclSyntax.self) || here.is(ClosureExprSyntax.self) { return false }
            if here.is(InitializerDeclSyntax.self) { return true }
            node = here.parent
        }
        return false
    }
}

extension VariableDeclSyntax {
    /// Whether it is a property, or stands at the root of the file, and is no variable of a function.
    var isMember: Bool {
        parent?.is(MemberBlockItemSyntax.self) == true || Syntax(self).around(CodeBlockSyntax.self) == nil
    }
}

extension FunctionSignatureSyntax {
    /// What it gives back; nil for nothing.
    var result: String? {
        guard let type = returnClause?.type.trimmedDescription, type != "Void", type != "()" else { return nil }
        return type
    }
}

extension CodeBlockItemSyntax {
    /// Whether it may be what its function, closure, accessor or expression gives back, though no `return` says so.
    var isImplicitResult: Bool {
        guard let list = parent?.as(CodeBlockItemListSyntax.self), list.count == 1, let owner = list.parent else {
            return false
        }
        if owner.is(ClosureExprSyntax.self) || owner.is(AccessorBlockSyntax.self) { return true }
        if owner.is(SwitchCaseSyntax.self) {
            return owner.around(SwitchExprSyntax.self).map { isResult(Syntax($0)) } ?? true
        }
        guard let block = owner.as(CodeBlockSyntax.self), let holder = block.parent else { return false }
        if let function = holder.as(FunctionDeclSyntax.self) { return function.signature.result != nil }
        if let accessor = holder.as(AccessorDeclSyntax.self) { return accessor.accessorSpecifier.text == "get" }
        if var branch = holder.as(IfExprSyntax.self) {
            while let outer = branch.parent?.as(IfExprSyntax.self) { branch = outer }
            return isResult(Syntax(branch))
        }
        return false
    }

    /// Whether an `if` or a `switch` is a value.
    private func isResult(_ expression: Syntax) -> Bool {
        guard let statement = expression.parent?.as(ExpressionStmtSyntax.self),
            let item = statement.parent?.as(CodeBlockItemSyntax.self)
        else { return true }
        return item.isImplicitResult
    }
}

extension ExprSyntax {
    /// Whether it is a tuple of several values.
    var isSeveral: Bool { self.as(TupleExprSyntax.self).map { $0.elements.count > 1 } ?? false }

    /// Whether it is a name, or a property of one: nothing happens where it is read.
    var isPlain: Bool {
        if self.is(DeclReferenceExprSyntax.self) { return true }
        guard let member = self.as(MemberAccessExprSyntax.self), let base = member.base else { return false }
        return base.isPlain
    }
}

/// Looks for a variable that has no value where it is declared.
final class Valueless: SyntaxVisitor {
    private let name: String
    private var isFound = false

    init(name: String) {
        self.name = name
        super.init(viewMode: .sourceAccurate)
    }

    func finds(in node: Syntax) -> Bool {
        walk(node)
        return isFound
    }

    override func visit(_ node: VariableDeclSyntax) -> SyntaxVisitorContinueKind {
        for binding in node.bindings where binding.initializer == nil && binding.accessorBlock == nil {
            if binding.pattern.trimmedDescription.contains(name) { isFound = true }
        }
        return .visitChildren
    }
}
