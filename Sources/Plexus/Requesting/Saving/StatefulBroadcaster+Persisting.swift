extension StatefulBroadcaster {
  /// Saves the state in a cacher whenever it changes, until the result is released.
  ///
  /// The newest state is written once after the delay, and when the source ends or the result is released. The state at
  /// this call is not written unless it changes, since it can just have been restored:
  ///
  /// ```swift
  /// func restoreCount(from cacher: any Cacher<Int>) async throws -> (CurrentValue<Int>, SavedState) {
  ///   let count = CurrentValue(try await cacher.entry(forKey: "count")?.value ?? 0)
  ///   return (count, count.persist(in: cacher, as: "count"))
  /// }
  /// ```
  ///
  /// To save a part of a state, persist the result of `select`, which need not be stored:
  /// `store.select(\.settings).persist(in: cacher, as: "settings")`.
  ///
  /// - Parameters:
  ///   - cacher: The cacher, which can have other entries.
  ///   - key: The key of the entry in the cacher, as it is.
  ///   - delay: The time from the first unsaved change to the write. Zero or less writes at once.
  ///   - clock: The clock of the delay, of the pauses after failures, and of the time limit of the cacher.
  /// - Returns: The saved state. Keep it: releasing it ends the saving, after a last write.
  public nonisolated func persist(
    in cacher: any Cacher<Element>,
    as key: String,
    delay: Duration = .milliseconds(500),
    clock: any Clock<Duration> = ContinuousClock()
  ) -> SavedState {
    let lane = SavingLane<Element>.of(key, in: cacher, clock: clock)
    return SavedState(SavingCore(self, in: lane, key: key, delay: delay, clock: clock))
  }
}
