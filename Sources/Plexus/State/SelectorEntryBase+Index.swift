extension SelectorEntryBase {
  /// The part of a table of selectors that depends on no type.
  @usableFromInline
  struct Index {
    /// A subscriber among those of its selector.
    private struct Place: Sendable {
      let selector: SelectorEntryBase
      let number: Int
    }

    private var places = KeyTable<ChangeSubscriptions.ID, Place>()
    private var selectorOfPath: [AnyKeyPath: SelectorEntryBase] = [:]

    @usableFromInline
    init() {}

    /// Returns the selector that all who select a key path share, if there is one.
    @usableFromInline
    func selector(for path: AnyKeyPath) -> SelectorEntryBase? {
      selectorOfPath[path]
    }

    @usableFromInline
    mutating func add(_ selector: SelectorEntryBase) {
      if let path = selector.path { selectorOfPath[path] = selector }
    }

    /// Connects a subscriber to the selector whose changes it is sent.
    ///
    /// - Parameters:
    ///   - id: The subscriber.
    ///   - selector: The selector.
    ///   - number: The number of the subscriber there.
    @usableFromInline
    mutating func connect(
      _ id: ChangeSubscriptions.ID,
      to selector: SelectorEntryBase,
      at number: Int
    ) {
      _ = places.insert(Place(selector: selector, number: number), for: id, hash: id.hash)
    }

    /// Removes a subscriber.
    ///
    /// - Returns: Its selector if it was the last subscriber.
    @usableFromInline
    mutating func remove(_ id: ChangeSubscriptions.ID) -> SelectorEntryBase? {
      guard let index = places.index(of: id, hash: id.hash) else { return nil }
      let place = places.remove(at: index).element
      let selector = place.selector
      guard selector.remove(at: place.number) else { return nil }
      if let path = selector.path { selectorOfPath[path] = nil }
      return selector
    }
  }
}

@available(*, unavailable)
extension SelectorEntryBase.Index: Sendable {}
