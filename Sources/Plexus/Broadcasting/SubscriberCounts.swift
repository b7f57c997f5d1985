extension Messenger {
  /// Returns a stream of the current number of subscribers, followed by every change of it.
  ///
  /// The stream does not count as a subscriber. By default, no change is skipped: a subscriber that joins and leaves
  /// causes two elements. When the messenger finishes or is released, the stream ends after a final 0.
  ///
  /// - Parameter bufferingPolicy: The policy for numbers that the reader has not read yet.
  /// - Returns: The stream. Dropping it or cancelling the task that iterates it ends the subscription.
  public nonisolated func subscriberCounts(
    bufferingPolicy: BufferingPolicy<Int> = .unbounded
  ) -> AsyncStream<Int> {
    hub.counts(bufferingPolicy: bufferingPolicy)
  }

  /// Waits until there is at least one subscriber, which can be a stream or a handler.
  ///
  /// This method returns immediately if there is one.
  ///
  /// ```swift
  /// let messenger = Messenger<String>()
  /// let listener = Task {
  ///   for await greeting in messenger.subscribe() { print(greeting) }
  /// }
  /// try await messenger.waitForSubscriber()
  /// messenger.send("hello")
  /// listener.cancel()
  /// ```
  ///
  /// - Throws: A `CancellationError` if the calling task is cancelled; ``BroadcastError/finished`` if the messenger has
  ///   finished.
  public nonisolated func waitForSubscriber() async throws {
    try await hub.waitForSubscriber(retaining: self)
  }
}

extension CurrentValue {
  /// Returns a stream of the current number of subscribers, followed by every change of it.
  ///
  /// The stream does not count as a subscriber, and ends when the value finishes or is released. For details, see
  /// ``Messenger/subscriberCounts(bufferingPolicy:)``.
  ///
  /// - Parameter bufferingPolicy: The policy for numbers that the reader has not read yet.
  /// - Returns: The stream. Dropping it or cancelling the task that iterates it ends the subscription.
  public nonisolated func subscriberCounts(
    bufferingPolicy: BufferingPolicy<Int> = .unbounded
  ) -> AsyncStream<Int> {
    hub.counts(bufferingPolicy: bufferingPolicy)
  }

  /// Waits until there is at least one subscriber, which can be a stream or a handler.
  ///
  /// - Throws: A `CancellationError` if the calling task is cancelled; ``BroadcastError/finished`` if the value has
  ///   finished.
  public nonisolated func waitForSubscriber() async throws {
    try await hub.waitForSubscriber(retaining: self)
  }
}

extension SharedSequence {
  /// Returns a stream of the current number of subscribers, followed by every change of it.
  ///
  /// The stream does not count as a subscriber, so it does not start the iteration. It ends when the sequence ends or
  /// the broadcaster is released. For details, see ``Messenger/subscriberCounts(bufferingPolicy:)``.
  ///
  /// - Parameter bufferingPolicy: The policy for numbers that the reader has not read yet.
  /// - Returns: The stream. Dropping it or cancelling the task that iterates it ends the subscription.
  public nonisolated func subscriberCounts(
    bufferingPolicy: BufferingPolicy<Int> = .unbounded
  ) -> AsyncStream<Int> {
    core.hub.counts(bufferingPolicy: bufferingPolicy)
  }

  /// Waits until there is at least one subscriber, which can be a stream or a handler.
  ///
  /// - Throws: A `CancellationError` if the calling task is cancelled; ``BroadcastError/finished`` if the sequence has
  ///   ended.
  public nonisolated func waitForSubscriber() async throws {
    try await core.hub.waitForSubscriber(retaining: self)
  }
}

extension BroadcastHub {
  /// Returns the number of subscribers and its changes.
  func counts(bufferingPolicy: BufferingPolicy<Int>) -> AsyncStream<Int> {
    removeOrphans()
    return AsyncStream(countSubscription(bufferingPolicy: bufferingPolicy))
  }

  /// Waits until there is a subscriber.
  ///
  /// - Parameter owner: The owner of the hub, whose release would end it.
  /// - Throws: A `CancellationError` if the calling task is cancelled; ``BroadcastError/finished`` if the hub has finished.
  func waitForSubscriber(retaining owner: some AnyObject) async throws {
    defer { withExtendedLifetime(owner) {} }
    removeOrphans()
    let counts = countSubscription(bufferingPolicy: .unbounded)
    for await count in counts where count > 0 { return }
    try Task.checkCancellation()
    throw BroadcastError.finished
  }
}
