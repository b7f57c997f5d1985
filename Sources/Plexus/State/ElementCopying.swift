/// Calls a closure with every element, on the sending thread.
final class ElementCopying<Element: Sendable>: Handler.SenderCalls {
  private let copy: @Sendable (Element) -> Void

  init(_ copy: @escaping @Sendable (Element) -> Void) {
    self.copy = copy
  }

  var isOrdered: Bool { true }

  func call(_ item: HandlerQueue.Item, isWanted: Bool, in queue: HandlerQueue) {
    if isWanted { copy(Box<Element>.element(of: item.box)) }
  }

  func note() {}

  func takeBack(in queue: HandlerQueue) {}

  func removeOrphans() {}

  func end() {}
}
