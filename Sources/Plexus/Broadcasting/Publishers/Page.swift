/// A part of a list that is loaded page by page.
public struct Page<Item: Sendable, Cursor: Sendable>: Sendable {
  /// What is on the page.
  public var items: [Item]
  /// Where the next page begins; `nil` on the last one.
  public var next: Cursor?

  /// Creates a page.
  ///
  /// - Parameters:
  ///   - items: What is on the page. It may be empty, even if it is not the last one.
  ///   - next: Where the next page begins; `nil` if there is none.
  public init(items: [Item], next: Cursor?) {
    self.items = items
    self.next = next
  }
}

extension Page: Equatable where Item: Equatable, Cursor: Equatable {}
extension Page: Hashable where Item: Hashable, Cursor: Hashable {}
