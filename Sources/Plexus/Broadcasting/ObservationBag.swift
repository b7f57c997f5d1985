/// A collection of tokens that are cancelled together.
///
/// Releasing the bag cancels its tokens. It can be used again after ``cancelAll()``.
///
/// ```swift
/// let messenger = Messenger<String>()
/// let bag = ObservationBag()
/// messenger.observe { text in print(text) }.store(in: bag)
/// ```
///
/// ## Topics
///
/// ### Creating a bag
/// - ``init()``
///
/// ### Adding and cancelling tokens
/// - ``insert(_:)``
/// - ``cancelAll()``
/// - ``count``
public final class ObservationBag: Sendable {
  private struct State {
    var tokens: Set<ObservationToken> = []
    /// The tokens in insertion order.
    var order: [ObservationToken] = []
    /// The number of tokens at which ended ones are removed.
    var threshold = 16
  }

  private let state = Locked(State())

  /// Creates an empty bag.
  public init() {}

  deinit {
    cancelAll()
  }

  /// Adds a token, unless the bag contains it or it has ended.
  ///
  /// The bag drops tokens that end: that are cancelled, or whose source finishes or is released.
  ///
  /// - Parameter token: The token.
  public func insert(_ token: ObservationToken) {
    guard !token.isOver else { return }
    let isCrowded = state.withLock { state in
      guard state.tokens.insert(token).inserted else { return false }
      state.order.append(token)
      return state.order.count > state.threshold
    }
    if isCrowded { prune() }
  }

  /// Cancels the tokens in insertion order and empties the bag.
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

  /// Removes ended tokens, so that a bag does not grow in long use.
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
