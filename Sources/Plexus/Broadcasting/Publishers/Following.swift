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
  /// The sequence is iterated by a task of its own. An element is published like one that is given to
  /// ``update(_:)``, an error like one that is given to ``fail(_:)``; the end of the sequence changes
  /// nothing. Several sequences can be followed at once.
  ///
  /// The publisher is held weakly: the task is cancelled when the publisher is released, and what the
  /// sequence still yields has no effect. That is the only way to stop it early; end the sequence itself
  /// for another one.
  ///
  /// - Parameter sequence: What to follow.
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
  /// The sequence is iterated by a task of its own. Neither its end nor an error ends the messenger; a
  /// messenger has no place for an error, so turn it into a message before if somebody has to know. Several
  /// sequences can be followed at once.
  ///
  /// ```swift
  /// let everywhere = Messenger<String>()
  /// let here = Messenger<String>()
  /// everywhere.follow(here.subscribe())
  /// ```
  ///
  /// The messenger is held weakly: the task is cancelled when the messenger finishes or is released, and
  /// what the sequence still yields is not sent.
  ///
  /// - Parameter sequence: What to follow.
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
