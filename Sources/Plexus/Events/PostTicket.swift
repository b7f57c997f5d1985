/// What a post that is waited for has come to so far.
final class PostTicket: Sendable {
  private struct Progress {
    /// How many parts have not ended yet.
    var outstanding = 1
    var notified = 0
    var handled = 0
  }

  private let progress = Locked(Progress())
  private let result = OneShot<PostOutcome>()

  /// Counts one more part that has to end.
  func expectPart() {
    progress.withLock { $0.outstanding += 1 }
  }

  /// A part has ended; called with no lock held.
  ///
  /// - Parameters:
  ///   - notified: The subscribers that it has reached.
  ///   - handled: The successes among them.
  func endPart(notified: Int, handled: Int) {
    let outcome = progress.withLock { progress -> PostOutcome? in
      progress.outstanding -= 1
      progress.notified += notified
      progress.handled += handled
      guard progress.outstanding == 0 else { return nil }
      return PostOutcome(notified: progress.notified, handled: progress.handled)
    }
    if let outcome { result.set(outcome) }
  }

  /// The post has ended; called with no lock held.
  func end(with outcome: PostOutcome) {
    result.set(outcome)
  }

  /// Waits until the post has ended; called once.
  func outcome() async -> PostOutcome {
    await result.value()
  }
}
