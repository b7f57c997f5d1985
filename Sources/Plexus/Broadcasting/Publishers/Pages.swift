/// The pages of a list that have been loaded so far.
public struct Pages<Item: Sendable>: Sendable {
  /// What is on them, from the first page on.
  public var items: [Item]
  /// Whether the last page is among them.
  public var isComplete: Bool

  /// Creates a list of what has been loaded.
  ///
  /// - Parameters:
  ///   - items: What is on the pages, from the first one on.
  ///   - isComplete: Whether the last page is among them.
  public init(items: [Item], isComplete: Bool) {
    self.items = items
    self.isComplete = isComplete
  }
}

extension Pages: Equatable where Item: Equatable {}
extension Pages: Hashable where Item: Hashable {}
