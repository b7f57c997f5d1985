extension MultiplexerMap.Entry {
  /// Registers a live subscriber, which receives the current state of the value and then every change.
  ///
  /// For details, see ``Multiplexer/subscribe(refetching:bufferingPolicy:)``. A key with a live subscription is not
  /// evicted, and does not count towards the capacity.
  ///
  /// - Parameters:
  ///   - refetching: The reasons to fetch.
  ///   - bufferingPolicy: The policy for elements that the subscriber has not read yet.
  /// - Returns: The stream. Dropping it or cancelling the task that iterates it ends the subscription.
  public func subscribe(
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
  public func subscription(
    refetching: Refetching,
    bufferingPolicy: BufferingPolicy<LoadState<Value>> = .bufferingNewest(1)
  ) -> Subscription<LoadState<Value>> {
    cache.liveSubscription(
      to: key,
      hash: hash,
      of: self,
      refetching: refetching,
      bufferingPolicy: bufferingPolicy
    )
  }
}
