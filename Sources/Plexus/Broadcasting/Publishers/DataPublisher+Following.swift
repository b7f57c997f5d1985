extension DataPublisher {
  /// Publishes every element of a sequence as it arrives.
  ///
  /// ```swift
  /// let counter = DataPublisher<Int>()
  /// counter.follow(AsyncStream { continuation in
  ///   for number in 1...3 { continuation.yield(number) }
  ///   continuation.finish()
  /// })
  /// ```
  ///
  /// A task iterates the sequence. An element is published as by ``update(_:)``, and an error as by ``fail(_:)``. The
  /// end of the sequence has no effect. A publisher can follow several sequences at the same time.
  ///
  /// The publisher is held weakly. When it is released, the task is cancelled, and further elements have no effect. To
  /// stop earlier, end the sequence.
  ///
  /// - Parameter sequence: The sequence.
  public nonisolated func follow<Source: AsyncSequence & Sendable>(_ sequence: Source)
  where Source.Element == Value {
    core.hub.feed(
      from: sequence,
      receive: { [weak self] value in
        guard let self else { return false }
        self.update(value)
        return true
      },
      fail: { [weak self] error in self?.fail(error) }
    )
  }
}
