extension BatchWindow {
  /// A batch of items: all that are added within the window of the first one, up to a maximum size.
  struct BatchState<Item: Sendable>: Sendable {
    /// The consequence of adding an item.
    enum Step: Sendable {
      /// The item is in a batch that others have opened.
      case joins
      /// The item is the first of a batch; its number closes the batch at the end of the window.
      case opens(Int)
      /// The batch is full and departs; the item is the last of it.
      case departs([Item])
    }

    private let maximumSize: Int
    private var items: [Item] = []
    /// Items that do not count toward the maximum size; they depart with the others.
    private var dropped: [Item] = []
    /// The number of the batch that is open, or will be opened next.
    private(set) var number = 0

    /// - Parameter maximumSize: The largest number of items in a batch; `nil` for no limit.
    init(maximumSize: Int?) {
      self.maximumSize = maximumSize ?? .max
    }

    /// Returns whether a batch of that number is open.
    func isOpen(_ number: Int) -> Bool {
      number == self.number && !(items.isEmpty && dropped.isEmpty)
    }

    /// Adds an item.
    ///
    /// - Parameters:
    ///   - item: The item.
    ///   - isDropped: Returns whether an item no longer counts toward the maximum size.
    /// - Returns: The consequence.
    mutating func add(_ item: Item, isDropped: (Item) -> Bool = { _ in false }) -> Step {
      let isFirst = items.isEmpty && dropped.isEmpty
      items.append(item)
      if items.count >= maximumSize {
        dropped += items.filter(isDropped)
        items.removeAll(where: isDropped)
        if items.count >= maximumSize { return .departs(take()) }
      }
      return isFirst ? .opens(number) : .joins
    }

    /// Closes a batch at the end of its window.
    ///
    /// - Returns: Its items; none if it has departed before.
    mutating func close(_ number: Int) -> [Item] {
      isOpen(number) ? take() : []
    }

    private mutating func take() -> [Item] {
      defer {
        (items, dropped) = ([], [])
        number += 1
      }
      return items + dropped
    }
  }
}
