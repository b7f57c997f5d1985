/// A part of a list that is loaded page by page.
public struct Page<Item: Sendable, Cursor: Sendable>: Sendable {
  /// The items of the page.
  public var items: [Item]
  /// The cursor of the next page; `nil` on the last one.
  public var next: Cursor?

  /// Creates a page.
  ///
  /// - Parameters:
  ///   - items: The items of the page, which can be empty, even if it is not the last one.
  ///   - next: The cursor of the next page; `nil` if there is none.
  public init(items: [Item], next: Cursor?) {
    self.items = items
    self.next = next
  }
}

extension Page: Equatable where Item: Equatable, Cursor: Equatable {}
extension Page: Hashable where Item: Hashable, Cursor: Hashable {}
