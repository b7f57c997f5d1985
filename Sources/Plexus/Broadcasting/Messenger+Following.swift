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
