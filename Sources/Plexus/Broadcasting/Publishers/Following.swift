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

extension Messenger {
  /// Sends every element of a sequence as it arrives.
  ///
  /// A task iterates the sequence. Neither its end nor an error ends the messenger. A messenger cannot send errors: if
  /// they matter, turn them into messages first. A messenger can follow several sequences at the same time.
  ///
  /// ```swift
  /// let everywhere = Messenger<String>()
  /// let here = Messenger<String>()
  /// everywhere.follow(here.subscribe())
  /// ```
  ///
  /// The messenger is held weakly. When it finishes or is released, the task is cancelled, and further elements are not
  /// sent.
  ///
  /// - Parameter sequence: The sequence.
  public nonisolated func follow<Source: AsyncSequence & Sendable>(_ sequence: Source)
  where Source.Element == Message {
    hub.feed(
      from: sequence,
      receive: { [weak self] message in
        guard let self else { return false }
        self.send(message)
        return true
      },
      fail: { _ in }
    )
  }
}
