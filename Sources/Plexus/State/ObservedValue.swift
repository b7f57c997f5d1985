public import Observation

/// The newest element of a broadcaster, for views and whatever else observes objects.
///
/// ```swift
/// struct Counter: Sendable, Equatable { var count = 0 }
/// let store = Store<Counter, Int>(Counter()) { state, action in state.count += action }
/// let counter = await ObservedValue(store, initial: store.state)
/// print(await counter.value.count)
/// ```
///
/// The value is set on the main actor. An element that equals the value is not published, if the type can
/// tell; the pair of states of a ``PageStore`` cannot. Of elements that arrive faster than the main actor
/// takes them, all but the newest are skipped.
///
/// The broadcaster is followed as long as this object lives. It is not kept by it: when it has gone, the
/// value stays what it was last.
@MainActor
@Observable
public final class ObservedValue<Value: Sendable> {
  /// The newest element, or what was given at the beginning.
  public private(set) var value: Value

  @ObservationIgnored private var token: ObservationToken?

  /// Creates a value that follows a broadcaster.
  ///
  /// - Parameters:
  ///   - source: What to follow.
  ///   - initial: The value until the first element has arrived. A state arrives at the next turn of
  ///     the main actor.
  public init(_ source: some Broadcaster<Value>, initial: Value) {
    value = initial
    token = source.observe(bufferingPolicy: .bufferingNewest(1)) { [weak self] element in
      self?.receive(element)
    }
  }

  private func receive(_ element: Value) {
    guard !areEqual(element, value) else { return }
    value = element
  }
}

/// Returns whether two values are equal, and `false` if their type cannot tell.
private func areEqual<Value>(_ first: Value, _ second: Value) -> Bool {
  guard let type = Value.self as? any Equatable.Type else { return false }
  return areEqual(first, second, as: type)
}

/// Returns whether two values, whose type is the one given, are equal.
private func areEqual<Value, Same: Equatable>(
  _ first: Value,
  _ second: Value,
  as type: Same.Type
) -> Bool {
  guard let first = first as? Same, let second = second as? Same else { return false }
  return first == second
}
