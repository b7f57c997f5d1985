extension Broadcaster {
  /// Returns a broadcaster of what a closure makes of every element.
  ///
  /// ```swift
  /// let volume = CurrentValue(3)
  /// let texts = volume.map { "volume \($0)" }
  /// let token = texts.observe { text in print(text) }
  /// ```
  ///
  /// The result is a view: it is subscribed to this source only while it has subscribers itself, which share
  /// one subscription. Its streams end with the source; the view itself can be a temporary. It keeps the
  /// source, its subscribers do not.
  ///
  /// - Parameter transform: Makes an element. It runs once for each element, however many subscribers there
  ///   are, on a thread that sends, outside every lock.
  /// - Returns: The broadcaster. A new subscriber gets what a subscriber of the source would get, transformed.
  public nonisolated func map<Output: Sendable>(
    _ transform: @escaping @Sendable (Element) -> Output
  ) -> some Broadcaster<Output> {
    DerivedBroadcaster(self) { transform($0) }
  }

  /// Returns a broadcaster of the elements that satisfy a condition.
  ///
  /// Elements that do not pass take no room: a buffering policy counts those that do. Otherwise the rules are
  /// those of ``map(_:)``. A new subscriber of a state that does not pass gets nothing until one passes.
  ///
  /// - Parameter isIncluded: The condition. It runs once for each element, on a thread that sends, outside every
  ///   lock.
  /// - Returns: The broadcaster.
  public nonisolated func filter(
    _ isIncluded: @escaping @Sendable (Element) -> Bool
  ) -> some Broadcaster<Element> {
    DerivedBroadcaster<Self, Element>(self) { isIncluded($0) ? $0 : nil }
  }

  /// Returns a broadcaster that skips elements which equal the one before.
  ///
  /// A subscriber never gets an element that equals the one that it got last, also if its buffering policy has
  /// dropped others in between. Otherwise the rules are those of ``map(_:)``.
  ///
  /// ```swift
  /// let names = Messenger<String>()
  /// let token = names.removeDuplicates().observe { name in print(name) }
  /// names.send("Ada")
  /// names.send("Ada")
  /// names.send("Grace")  // prints Ada, then Grace
  /// ```
  ///
  /// - Returns: The broadcaster.
  public nonisolated func removeDuplicates() -> some Broadcaster<Element>
  where Element: Equatable {
    DerivedBroadcaster<Self, Element>(self, areEqual: { $0 == $1 }, { $0 })
  }
}

extension StatefulBroadcaster {
  /// Returns a broadcaster of the part of the state that a key path leads to.
  ///
  /// ```swift
  /// struct Form: Sendable, Equatable { var text = "", count = 0 }
  /// let form = CurrentValue(Form())
  /// let token = form.select(\.text).observe { text in print(text) }
  /// form.update { $0.count += 1 }  // prints nothing
  /// form.update { $0.text = "h" }
  /// ```
  ///
  /// The part is published when it changes: a subscriber never gets a value that equals the one that it got
  /// last. It is evaluated once for each state, however many subscribers the result has. While there are any,
  /// ``StatefulBroadcaster/current`` returns the part that was evaluated last. A ``Store`` evaluates equal key paths
  /// once for all its subscribers, whether the results are kept or temporaries.
  ///
  /// The result is a view: it is subscribed to this source only while it has subscribers itself. Its streams end
  /// with the source; the view itself can be a temporary. It keeps the source, its subscribers do not.
  ///
  /// - Parameter path: The path to the part.
  /// - Returns: The broadcaster.
  public nonisolated func select<V: Equatable & Sendable>(
    _ path: any KeyPath<Element, V> & Sendable
  ) -> some StatefulBroadcaster<V> {
    SelectedPart(self, path: path) { $0[keyPath: path] }
  }

  /// Returns a broadcaster of what a closure makes of the state.
  ///
  /// The rules are those of ``select(_:)-(KeyPath<Self.Element,V>Sendable)``.
  ///
  /// - Parameter select: Makes the value. It runs on a thread that sends, or reads
  ///   ``StatefulBroadcaster/current`` while there is no subscriber, outside every lock.
  /// - Returns: The broadcaster.
  public nonisolated func select<V: Equatable & Sendable>(
    _ select: @escaping @Sendable (Element) -> V
  ) -> some StatefulBroadcaster<V> {
    SelectedPart(self, select)
  }
}
