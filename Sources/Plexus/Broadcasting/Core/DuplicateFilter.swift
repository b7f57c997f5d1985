/// A filter that removes consecutive duplicates for one subscriber.
@usableFromInline
final class DuplicateFilter<Element: Sendable>: Sendable {
  @usableFromInline typealias AreEqual = @Sendable (Element, Element) -> Bool

  private let areEqual: AreEqual
  private let last = Locked<Element?>(nil)

  @usableFromInline
  init(_ areEqual: @escaping AreEqual) {
    self.areEqual = areEqual
  }

  /// Compares an element with the last one and stores it if it differs; called for one element at a time.
  ///
  /// - Returns: Whether it differs from the last one.
  @usableFromInline
  func admits(_ element: Element) -> Bool {
    let previous = last.withLock { $0 }
    if let previous, areEqual(previous, element) { return false }
    last.withLock { $0 = element }
    return true
  }

  /// Releases the last element, once the subscriber gets no other one.
  @usableFromInline
  func forget() {
    last.release { $0.take() }
  }
}

extension Handler.Recipe {
  /// Returns a recipe whose handler gets no consecutive duplicates.
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
      // The handler gets every element that is sent, and consecutive ones differ.
      break
    }
    return recipe
  }
}
