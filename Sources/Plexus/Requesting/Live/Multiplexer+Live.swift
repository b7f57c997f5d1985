extension Multiplexer {
  /// Registers a live subscriber, which receives the current state of the value and then every change.
  ///
  /// The subscriber keeps the value up to date: the value is fetched if it is missing, after a refresh, and for the
  /// given reasons. For details, see ``Refetching``.
  ///
  /// ```swift
  /// let weather = Multiplexer(policy: CachePolicy(timeToLive: .seconds(60))) { "sunny" }
  /// for await state in weather.subscribe(refetching: .whenStale) {
  ///   print(state.value ?? "?")
  ///   if state.value != nil { break }
  /// }
  /// ```
  ///
  /// - Parameters:
  ///   - refetching: The reasons to fetch.
  ///   - bufferingPolicy: The policy for elements that the subscriber has not read yet.
  /// - Returns: The stream. Dropping it or cancelling the task that iterates it ends the subscription.
  public nonisolated func subscribe(
    refetching: Refetching,
    bufferingPolicy: BufferingPolicy<LoadState<Value>> = .bufferingNewest(1)
  ) -> AsyncStream<LoadState<Value>> {
    AsyncStream(subscription(refetching: refetching, bufferingPolicy: bufferingPolicy))
  }

  /// Registers a live subscriber, which receives the current state of the value and then every change.
  ///
  /// For details, see ``subscribe(refetching:bufferingPolicy:)``.
  ///
  /// - Parameters:
  ///   - refetching: The reasons to fetch.
  ///   - bufferingPolicy: The policy for elements that the subscriber has not read yet.
  /// - Returns: The subscription, which ends when it is dropped or the task that iterates it is cancelled.
  public nonisolated func subscription(
    refetching: Refetching,
    bufferingPolicy: BufferingPolicy<LoadState<Value>> = .bufferingNewest(1)
  ) -> Subscription<LoadState<Value>> {
    cache.liveSubscription(
      to: SingleKey(),
      hash: 0,
      of: self,
      refetching: refetching,
      bufferingPolicy: bufferingPolicy
    )
  }
}
