extension Broadcaster {
  /// Returns a broadcaster of the transformed elements.
  ///
  /// ```swift
  /// let volume = CurrentValue(3)
  /// let texts = volume.map { "volume \($0)" }
  /// let token = texts.observe { text in print(text) }  // Prints "volume 3"
  /// ```
  ///
  /// The result is a view. It is subscribed to this source only while it has subscribers, which share one subscription.
  /// The view keeps the source alive, but its subscribers do not: their streams end with the source. You do not have to
  /// store the view.
  ///
  /// - Parameter transform: The transform. It runs once per element, regardless of the number of subscribers, with no
  ///   lock held: on a thread that sends, or in a task that continues after about a millisecond of work. For a
  ///   subscriber that is added while an element is being transformed, it also runs on that subscriber's thread.
  /// - Returns: The broadcaster. A new subscriber receives the transformed replay of the source.
  public nonisolated func map<Output: Sendable>(
    _ transform: @escaping @Sendable (Element) -> Output
  ) -> some Broadcaster<Output> {
    DerivedBroadcaster(self) { transform($0) }
  }

  /// Returns a broadcaster of the elements that satisfy a condition.
  ///
  /// A buffering policy counts only the elements that satisfy the condition. If the current state does not, a new
  /// subscriber receives nothing until an element does. In all other respects, the result behaves like that of
  /// ``map(_:)``.
  ///
  /// - Parameter isIncluded: The condition. It runs once per element, like a transform.
  /// - Returns: The broadcaster.
  public nonisolated func filter(
    _ isIncluded: @escaping @Sendable (Element) -> Bool
  ) -> some Broadcaster<Element> {
    DerivedBroadcaster<Self, Element>(self) { isIncluded($0) ? $0 : nil }
  }

  /// Returns a broadcaster that skips consecutive equal elements.
  ///
  /// A subscriber never receives an element that equals the last one that it has received, even if its buffering policy
  /// has dropped others in between. In all other respects, the result behaves like that of ``map(_:)``.
  ///
  /// ```swift
  /// let names = Messenger<String>()
  /// let token = names.removeDuplicates().observe { name in print(name) }
  /// names.send("Ada")
  /// names.send("Ada")
  /// names.send("Grace")
  /// // Prints "Ada"
  /// // Prints "Grace"
  /// ```
  ///
  /// - Returns: The broadcaster.
  public nonisolated func removeDuplicates() -> some Broadcaster<Element>
  where Element: Equatable {
    DerivedBroadcaster<Self, Element>(self, areEqual: { $0 == $1 }, { $0 })
  }
}

extension StatefulBroadcaster {
  /// Returns a state of the transformed elements.
  ///
  /// The result behaves like that of ``Broadcaster/map(_:)``, and has a ``current`` element.
  ///
  /// ```swift
  /// let volume = CurrentValue(3)
  /// let text = volume.map { "volume \($0)" }
  /// print(text.current)  // Prints "volume 3"
  /// ```
  ///
  /// - Parameter transform: The transform. It runs like one of ``Broadcaster/map(_:)``, or on the thread that reads
  ///   ``current`` while there is no subscriber.
  /// - Returns: The state.
  public nonisolated func map<Output: Sendable>(
    _ transform: @escaping @Sendable (Element) -> Output
  ) -> some StatefulBroadcaster<Output> {
    StateMap(self, transform)
  }

  /// Returns a state that skips consecutive equal elements.
  ///
  /// The result behaves like that of ``Broadcaster/removeDuplicates()``, and has a ``current`` element.
  ///
  /// - Returns: The state.
  public nonisolated func removeDuplicates() -> some StatefulBroadcaster<Element>
  where Element: Equatable {
    SelectedPart(self) { $0 }
  }

  /// Returns a broadcaster of a part of the state, selected by a key path.
  ///
  /// ```swift
  /// struct Form: Sendable, Equatable { var text = "?", count = 0 }
  /// let form = CurrentValue(Form())
  /// let token = form.select(\.text).observe { text in print(text) }  // Prints "?"
  /// form.update { $0.count += 1 }
  /// form.update { $0.text = "h" }  // Prints "h"
  /// ```
  ///
  /// The part is published when it changes: a subscriber never receives a value that equals the last one that it has
  /// received. A new subscriber never begins with a value that is older than ``StatefulBroadcaster/current`` was before
  /// it subscribed, even if another thread is still delivering an older one. The part is evaluated once per state,
  /// regardless of the number of subscribers. While there are subscribers, `current` returns the last result. A ``Store``
  /// and a ``PageStore`` evaluate equal key paths once for all their subscribers, even if the results of `select` are
  /// temporaries.
  ///
  /// The result is a view. It is subscribed to this source only while it has subscribers. The view keeps the source
  /// alive, but its subscribers do not: their streams end with the source. You do not have to store the view.
  ///
  /// - Parameter path: The path to the part.
  /// - Returns: The broadcaster.
  public nonisolated func select<V: Equatable & Sendable>(
    _ path: any KeyPath<Element, V> & Sendable
  ) -> some StatefulBroadcaster<V> {
    SelectedPart(self, path: path) { $0[keyPath: path] }
  }

  /// Returns a broadcaster of a value that a closure derives from the state.
  ///
  /// The result behaves like that of ``select(_:)-(KeyPath<Self.Element,V>Sendable)``.
  ///
  /// - Parameter select: A closure that derives the value. It is called with no lock held. It runs like a transform of
  ///   ``Broadcaster/map(_:)``, or on the thread that reads ``StatefulBroadcaster/current`` while there is no
  ///   subscriber.
  /// - Returns: The broadcaster.
  public nonisolated func select<V: Equatable & Sendable>(
    _ select: @escaping @Sendable (Element) -> V
  ) -> some StatefulBroadcaster<V> {
    SelectedPart(self, select)
  }
}
