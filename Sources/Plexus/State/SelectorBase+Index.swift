extension SelectorBase {
  /// The part of a table of selectors that depends on no type.
  @usableFromInline
  struct Index {
    /// A subscriber among those of its selector.
    private struct Place: Sendable {
      let selector: SelectorBase
      let number: Int
    }

    /// With gaps where selectors were removed, except at the end.
    private var selectors: ContiguousArray<SelectorBase?> = []
    private var gaps = 0
    private var places = KeyTable<ChangeSubscriptions.ID, Place>()
    private var selectorOfPath: [AnyKeyPath: SelectorBase] = [:]

    @usableFromInline
    init() {}

    /// The number of selectors and gaps.
    @usableFromInline var slotCount: Int { selectors.count }

    /// Returns the selector that all who select a key path share, if there is one.
    @usableFromInline
    func selector(for path: AnyKeyPath) -> SelectorBase? {
      selectorOfPath[path]
    }

    @usableFromInline
    mutating func add(_ selector: SelectorBase) {
      selector.slot = selectors.count
      selectors.append(selector)
      if let path = selector.path { selectorOfPath[path] = selector }
    }

    /// Notes which selector a subscriber follows, and its place there.
    @usableFromInline
    mutating func connect(_ id: ChangeSubscriptions.ID, to selector: SelectorBase, at number: Int) {
      _ = places.insert(Place(selector: selector, number: number), for: id, hash: id.hash)
    }

    /// Removes a subscriber.
    ///
    /// - Returns: The slot of its selector if it was the last subscriber, which is a gap now.
    @usableFromInline
    mutating func remove(_ id: ChangeSubscriptions.ID) -> Int? {
      guard let index = places.index(of: id, hash: id.hash) else { return nil }
      let place = places.remove(at: index).element
      let selector = place.selector
      let (isEmpty, hub) = selector.remove(at: place.number)
      withExtendedLifetime(hub) {}
      guard isEmpty else { return nil }
      if let path = selector.path { selectorOfPath[path] = nil }
      let slot = selector.slot
      selectors[slot] = nil
      gaps += 1
      while let last = selectors.last, last == nil {
        selectors.removeLast()
        gaps -= 1
      }
      return slot
    }

    @usableFromInline var hasManyGaps: Bool { gaps > 16 && gaps > selectors.count / 2 }

    @usableFromInline
    mutating func closeGaps() {
      selectors.removeAll { $0 == nil }
      gaps = 0
      for (slot, selector) in selectors.enumerated() { selector?.slot = slot }
    }
  }
}

@available(*, unavailable)
extension SelectorBase.Index: Sendable {}
