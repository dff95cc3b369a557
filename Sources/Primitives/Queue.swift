// A queue in an array.

/// A queue in an array: what has been taken from its front leaves room, which is given back by and by.
///
/// To take the first element costs O(1) in the long run, and moves no index; any other may be taken, too. An index is
/// void once an element before it has been taken out, or room was given back.
public struct Queue<Element> {
    /// So few free places at the front are not given back yet; more are, once they are half of all.
    @inlinable static var spareCount: Int { 64 }

    @usableFromInline var elements: [Element] = []
    @usableFromInline var head = 0

    /// An empty queue.
    @inlinable
    public init() {}

    /// Puts an element at the end.
    @inlinable
    public mutating func append(_ element: Element) { elements.append(element) }

    /// Takes out the first element, which there must be.
    @inlinable
    public mutating func removeFirst() { remove(at: head) }

    /// Takes out the element at an index.
    @inlinable
    @discardableResult
    public mutating func remove(at index: Int) -> Element {
        guard index == head else { return elements.remove(at: index) }
        let element = elements[head]
        head += 1
        if head >= Self.spareCount, head * 2 >= elements.count { giveRoomBack() }
        return element
    }

    /// Takes out all that are meant; asks of each once, the first first.
    @inlinable
    public mutating func removeAll(where isMeant: (Element) -> Bool) {
        giveRoomBack()
        elements.removeAll(where: isMeant)
    }

    /// Takes out all, and keeps the room.
    @inlinable
    public mutating func removeAll() {
        elements.removeAll(keepingCapacity: true)
        head = 0
    }

    @inlinable
    mutating func giveRoomBack() {
        elements.removeFirst(head)
        head = 0
    }
}

extension Queue: RandomAccessCollection {
    /// Where the first element is.
    @inlinable public var startIndex: Int { head }
    /// Behind the last element.
    @inlinable public var endIndex: Int { elements.count }

    /// The element at an index of `indices`.
    @inlinable
    public subscript(index: Int) -> Element {
        get { elements[index] }
        set { elements[index] = newValue }
    }
}

extension Queue: Sendable where Element: Sendable {}
extension Queue: Equatable where Element: Equatable {
    /// Whether both hold the same elements in the same order, whatever was taken out before.
    public static func == (left: Self, right: Self) -> Bool { left.elementsEqual(right) }
}
