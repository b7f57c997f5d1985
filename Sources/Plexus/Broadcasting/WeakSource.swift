// @unchecked Sendable because the object is a broadcaster, which is `Sendable`: the type `AnyObject` does not show that.

/// A state that is read without keeping it alive.
private struct WeakSource<Source: StatefulBroadcaster>: @unchecked Sendable {
  weak let object: AnyObject?

  var current: Source.Element? { (object as? Source)?.current }
}

/// A view that can be read without keeping its source alive.
protocol WeaklyReadable<Element>: StatefulBroadcaster {
  /// Returns the current element while the source exists.
  nonisolated var weakCurrent: @Sendable () -> Element? { get }
}

extension StatefulBroadcaster {
  /// Returns a closure that returns the current element, without keeping the source alive.
  ///
  /// It returns `nil` once the source was released, and for values of the user's, which cannot be held weakly.
  nonisolated func weaklyReading() -> @Sendable () -> Element? {
    if let view = self as? any WeaklyReadable<Element> { return view.weakCurrent }
    guard Self.self is AnyClass else { return { nil } }
    let source = WeakSource<Self>(object: self as AnyObject)
    return { source.current }
  }
}
