/// The loaded pages of a list.
public struct Pages<Item: Sendable>: Sendable {
  /// The items of all pages, from the first page on.
  public var items: [Item]
  /// Whether the last page is loaded.
  public var isComplete: Bool

  /// Creates a list of loaded pages.
  ///
  /// - Parameters:
  ///   - items: The items of all pages, from the first page on.
  ///   - isComplete: Whether the last page is loaded.
  public init(items: [Item], isComplete: Bool) {
    self.items = items
    self.isComplete = isComplete
  }
}

extension Pages: Equatable where Item: Equatable {}
extension Pages: Hashable where Item: Hashable {}
