// @unchecked Sendable because Swift asks for it of a class with subclasses: an element is Sendable and never
// changes. The unsafe cast restores the type of an element: a source has elements of one type only, puts them
// into boxes of that type, and hands them to handlers that were made for that type.

/// An element on its way to handlers, without its type.
///
/// Queues and what is in them do not depend on the type, and are compiled once.
@usableFromInline
class AnyBox: @unchecked Sendable {
  @inlinable
  init() {}
}

/// An element on its way to handlers.
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
