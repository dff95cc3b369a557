// Typed access to the values of a metainfo file, with errors that name the key.

/// A value with the key under which it was found.
struct MetainfoField {
    let node: BencodeNode
    let key: String
    /// The file whose description this is, from 0.
    var fileIndex: Int?

    func error(_ reason: MetainfoError.Reason) -> MetainfoError {
        MetainfoError(reason, key: key, fileIndex: fileIndex)
    }

    /// What a key of this dictionary maps to.
    func field(_ key: String) -> MetainfoField? {
        node[key].map { MetainfoField(node: $0, key: key, fileIndex: fileIndex) }
    }

    func require(_ key: String) throws(MetainfoError) -> MetainfoField {
        guard let field = field(key) else { throw MetainfoError(.missing, key: key, fileIndex: fileIndex) }
        return field
    }

    /// What a key with a name for people maps to.
    ///
    /// Old programs write the name in their own encoding, and beside it the same in UTF-8.
    func textField(_ key: String) -> MetainfoField? { field(key + ".utf-8") ?? field(key) }

    func requireText(_ key: String) throws(MetainfoError) -> MetainfoField {
        guard let field = textField(key) else { throw MetainfoError(.missing, key: key, fileIndex: fileIndex) }
        return field
    }

    func integer() throws(MetainfoError) -> Int64 {
        guard let value = node.integer else { throw error(.wrongKind(expected: .integer)) }
        return value
    }

    func integer(in range: ClosedRange<Int>) throws(MetainfoError) -> Int {
        guard let value = Int(exactly: try integer()), range.contains(value) else {
            throw error(.outOfRange(lowest: range.lowerBound, highest: range.upperBound))
        }
        return value
    }

    func bytes() throws(MetainfoError) -> ArraySlice<UInt8> {
        guard let value = node.bytes else { throw error(.wrongKind(expected: .bytes)) }
        return value
    }

    func elements() throws(MetainfoError) -> BencodeNode.Elements {
        guard let elements = node.elements else { throw error(.wrongKind(expected: .list)) }
        return elements
    }

    func entries() throws(MetainfoError) -> BencodeNode.Entries {
        guard let entries = node.entries else { throw error(.wrongKind(expected: .dictionary)) }
        return entries
    }

    func component() throws(MetainfoError) -> PathComponent { try component(bytes()) }

    /// A name that must be safe to have in a path.
    func component(_ bytes: ArraySlice<UInt8>) throws(MetainfoError) -> PathComponent {
        do throws(PathComponent.Refusal) {
            return try PathComponent(bytes)
        } catch {
            throw self.error(.badName(error))
        }
    }
}
