/// Several tokens that are cancelled together.
///
/// Releasing the bag cancels what is in it. A bag that was emptied with ``cancelAll()`` can be used
/// again.
public final class ObservationBag: Sendable {
  private struct State {
    var tokens: Set<ObservationToken> = []
    /// In order of insertion.
    var order: [ObservationToken] = []
    /// How many tokens there can be before those that have ended are looked for.
    var threshold = 16
  }

  private let state = Locked(State())

  /// Creates an empty bag.
  public init() {}

  deinit {
    cancelAll()
  }

  /// Adds a token; one that is in the bag already, or has ended, is not added.
  ///
  /// The bag forgets tokens that have ended: those that were cancelled one by one, and those whose source has
  /// finished or was released.
  ///
  /// - Parameter token: What to cancel with the others.
  public func insert(_ token: ObservationToken) {
    guard !token.isOver else { return }
    let isCrowded = state.withLock { state in
      guard state.tokens.insert(token).inserted else { return false }
      state.order.append(token)
      return state.order.count > state.threshold
    }
    if isCrowded { prune() }
  }

  /// Cancels the tokens in the order in which they were inserted, and empties the bag.
  public func cancelAll() {
    let state = state.withLock { state in
      defer { state = State() }
      return state
    }
    for token in state.order { token.cancel() }
  }

  /// The number of tokens that have not ended.
  public var count: Int {
    prune()
    return state.withLock { $0.order.count }
  }

  /// Lets go of tokens that have ended, so that a bag in use for long does not grow.
  private func prune() {
    let ended = state.withLock { $0.order }.filter(\.isOver)
    state.withLock { state in
      if !ended.isEmpty {
        state.tokens.subtract(ended)
        state.order.removeAll { !state.tokens.contains($0) }
      }
      state.threshold = max(16, state.order.count * 2)
    }
    withExtendedLifetime(ended) {}
  }
}
