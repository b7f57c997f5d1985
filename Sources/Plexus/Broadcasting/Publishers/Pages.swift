/// The loaded pages of a list.
public struct Pages<Item: Sendable>: Sendable {
  /// The items of all loaded pages, in order.
  public var items: [Item]
  /// Whether there is no page after the loaded ones.
  public var isComplete: Bool
  /// Whether there is no page before the loaded ones.
  public var isCompleteAtStart: Bool
  /// The number of loaded pages.
  public var pageCount: Int

  /// Creates a list of loaded pages.
  ///
  /// - Parameters:
  ///   - items: The items of all loaded pages, in order.
  ///   - isComplete: Whether there is no page after them.
  ///   - isCompleteAtStart: Whether there is no page before them.
  ///   - pageCount: The number of loaded pages.
  public init(
    items: [Item],
    isComplete: Bool,
    isCompleteAtStart: Bool = true,
    pageCount: Int = 1
  ) {
    self.items = items
    self.isComplete = isComplete
    self.isCompleteAtStart = isCompleteAtStart
    self.pageCount = pageCount
  }
}

extension Pages: Equatable where Item: Equatable {}
extension Pages: Hashable where Item: Hashable {}
