/// A part of a list that is loaded page by page.
public struct Page<Item: Sendable, Cursor: Equatable & Sendable>: Sendable {
  /// The items of the page.
  public var items: [Item]
  /// The cursor of the previous page; `nil` on the earliest one, and if the list is loaded forward only.
  public var previous: Cursor?
  /// The cursor of the next page; `nil` on the last one.
  public var next: Cursor?

  /// Creates a page.
  ///
  /// - Parameters:
  ///   - items: The items of the page, which can be empty, even if it is not the last one.
  ///   - previous: The cursor of the previous page; `nil` if there is none, or if the list is loaded forward only.
  ///   - next: The cursor of the next page; `nil` if there is none.
  public init(items: [Item], previous: Cursor? = nil, next: Cursor?) {
    self.items = items
    self.previous = previous
    self.next = next
  }
}

extension Page: Equatable where Item: Equatable {}
extension Page: Hashable where Item: Hashable, Cursor: Hashable {}
