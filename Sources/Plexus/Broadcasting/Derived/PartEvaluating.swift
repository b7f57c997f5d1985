/// A source that evaluates parts of its states itself: equal key paths once for all subscribers.
protocol PartEvaluating<Element>: StatefulBroadcaster {
  /// Subscribes to the changes of a part.
  ///
  /// - Parameters:
  ///   - core: The core of the view that subscribes.
  ///   - select: Makes the part.
  ///   - path: The key path, if that is what is selected.
  /// - Returns: The subscription.
  nonisolated func connection<Part: Equatable & Sendable>(
    of core: DerivedCore<Part>,
    _ select: @escaping @Sendable (Element) -> Part,
    path: (any AnyKeyPath & Sendable)?
  ) -> DerivedCore<Part>.Connection

  /// Returns the part that a new subscriber of a view gets first.
  ///
  /// - Parameters:
  ///   - core: The core of the view.
  ///   - select: Makes the part.
  ///   - path: The key path, if that is what is selected.
  /// - Returns: The part.
  nonisolated func replay<Part: Equatable & Sendable>(
    of core: DerivedCore<Part>,
    _ select: @escaping @Sendable (Element) -> Part,
    path: (any AnyKeyPath & Sendable)?
  ) -> Replay<Part>?
}
