/// The loaded pages of a list.
public struct Pages<Item: Sendable>: Sendable {
  /// The items of all loaded pages, in order.
  public var items: [Item]
  /// Whether no page follows the loaded ones.
  public var isComplete: Bool
  /// Whether no page precedes the loaded ones.
  public var isCompleteAtStart: Bool
  /// The number of loaded pages.
  public var pageCount: Int

  /// Creates a list of loaded pages.
  ///
  /// - Parameters:
  ///   - items: The items of all loaded pages, in order.
  ///   - isComplete: Whether no page follows the loaded ones.
  ///   - isCompleteAtStart: Whether no page precedes the loaded ones.
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
