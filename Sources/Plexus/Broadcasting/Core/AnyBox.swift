// @unchecked Sendable because Swift requires it of a class with subclasses: an element is Sendable and never
// changes. The unsafe cast restores the type of an element: a source has elements of one type only, puts them
// into boxes of that type, and passes them to handlers that were created for that type.

/// A type-erased element in the queues of handlers.
///
/// Queues and their items do not depend on the type of the element, and are compiled once.
@usableFromInline
class AnyBox: @unchecked Sendable {
  @inlinable
  init() {}
}

/// An element in the queues of handlers.
@usableFromInline
final class Box<Element: Sendable>: AnyBox, @unchecked Sendable {
  @usableFromInline let element: Element

  @inlinable
  init(_ element: Element) {
    self.element = element
    super.init()
  }

  /// Returns the element in a box of the same source.
  @inlinable
  static func element(of box: AnyBox) -> Element {
    unsafe unsafeDowncast(box, to: Box.self).element
  }
}
