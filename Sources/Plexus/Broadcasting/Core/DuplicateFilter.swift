/// The memory of one subscriber that gets no element twice in a row.
@usableFromInline
final class DuplicateFilter<Element: Sendable>: Sendable {
  @usableFromInline typealias AreEqual = @Sendable (Element, Element) -> Bool

  private let areEqual: AreEqual
  private let last = Locked<Element?>(nil)

  @usableFromInline
  init(_ areEqual: @escaping AreEqual) {
    self.areEqual = areEqual
  }

  /// Notes an element that the subscriber is about to get; called for one element at a time.
  ///
  /// - Returns: Whether it differs from the one before.
  @usableFromInline
  func admits(_ element: Element) -> Bool {
    let previous = last.withLock { $0 }
    if let previous, areEqual(previous, element) { return false }
    last.withLock { $0 = element }
    return true
  }

  /// Releases the element: the subscriber gets no other one.
  @usableFromInline
  func forget() {
    let former = last.withLock { $0.take() }
    withExtendedLifetime(former) {}
  }
}

extension Handler.Recipe {
  /// Returns a recipe whose handler gets no element twice in a row.
  @usableFromInline
  func removingDuplicates<Element>(_ filter: DuplicateFilter<Element>) -> Self {
    var recipe = self
    switch call {
    case .synchronous(let call):
      recipe.call = .synchronous { box in
        filter.admits(Box<Element>.element(of: box)) ? call(box) : .succeeded
      }
    case .suspending(let call):
      recipe.call = .suspending { box in
        filter.admits(Box<Element>.element(of: box)) ? await call(box) : .succeeded
      }
    case .direct:
      // It sees every element that is sent, and those differ.
      break
    }
    return recipe
  }
}
