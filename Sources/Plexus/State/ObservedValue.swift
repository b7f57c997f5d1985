public import Observation

/// The newest element of a state, for views and other observers of objects.
///
/// ```swift
/// struct Form: Sendable, Equatable { var text = "", count = 0 }
/// enum FormAction: Sendable { case typed(String) }
/// let store = Store<Form, FormAction>(Form()) { form, action in
///   switch action {
///   case .typed(let text): form.text = text
///   }
/// }
/// let text = await ObservedValue(store.select(\.text))
/// store.dispatch(.typed("h"))
/// print(await text.value)  // h
/// ```
///
/// ## Reading
///
/// ``value`` is the value of the source itself, at once: on the main actor it is the new one as soon as the call
/// that changed it has returned. A text field can therefore be bound to it.
///
/// ## Invalidation
///
/// Observers are told of a change before the call that makes it returns, if that call is made on the main actor;
/// otherwise at the next turn of the main actor. A value that equals the one before invalidates nothing, if its
/// type is `Equatable`. Of a large state follow what a view shows:
/// ``StatefulBroadcaster/select(_:)-(KeyPath<Self.Element,V>Sendable)`` keeps changes of other parts from the view.
///
/// ## Lifetime
///
/// The source is kept, and is subscribed to as long as this object lives. When the source has finished, the
/// value stays what it was last.
///
/// ## Topics
///
/// ### Creating an observed value
/// - ``init(_:)``
/// - ``init(_:initial:)``
///
/// ### Reading
/// - ``value``
@MainActor
@Observable
public final class ObservedValue<Value: Sendable> {
  @ObservationIgnored private let source: any StatefulBroadcaster<Value>
  @ObservationIgnored private let areEqual: (Value, Value) -> Bool
  /// The value that observers have been told of.
  @ObservationIgnored private var told: Value
  /// Whether an observer has read another one since.
  @ObservationIgnored private var hasToldAnother = false
  /// The subscriptions that end with this object.
  @ObservationIgnored private var tokens: [ObservationToken] = []

  /// Creates a value that follows a state.
  ///
  /// - Parameter source: The state, which is kept.
  public convenience init(_ source: some StatefulBroadcaster<Value>) {
    self.init(following: source)
  }

  /// Creates a value that follows a source without a state, such as a ``Messenger``.
  ///
  /// - Parameters:
  ///   - source: The source, which is not kept.
  ///   - initial: The value until an element is sent.
  public convenience init(_ source: some Broadcaster<Value>, initial: Value) {
    let latest = CurrentValue(initial)
    let copying = ElementCopying<Value> { latest.value = $0 }
    self.init(following: latest)
    tokens.append(source.observe(by: copying))
  }

  private init(following source: any StatefulBroadcaster<Value>) {
    self.source = source
    told = source.current
    areEqual = equality()
    tokens.append(source.observe(by: ChangeNotice { [weak self] in self?.refresh() }))
  }

  /// The value of the source at this moment.
  public var value: Value {
    access(keyPath: \.value)
    let value = source.current
    // Not told of it yet, it may be the former value again when the others are.
    if !areEqual(value, told) { hasToldAnother = true }
    return value
  }

  /// Tells the observers if the value has changed.
  private func refresh() {
    let value = source.current
    guard hasToldAnother || !areEqual(value, told) else { return }
    withMutation(keyPath: \.value) {
      told = value
      hasToldAnother = false
    }
  }
}

extension Broadcaster {
  /// Registers a handler that is called by the threads that send.
  fileprivate nonisolated func observe(by calls: any Handler.DirectCalls) -> ObservationToken {
    let recipe = Handler.Recipe(isolation: nil, .direct(calls))
    return ObservationToken(subscription(bufferingPolicy: .unbounded).handler(recipe))
  }
}

/// Returns what compares two values; they are never equal if their type has no way to tell.
private func equality<Value>() -> (Value, Value) -> Bool {
  func equality<Same: Equatable>(of type: Same.Type) -> (Value, Value) -> Bool {
    { first, second in
      guard let first = first as? Same, let second = second as? Same else { return false }
      return first == second
    }
  }
  if let type = Value.self as? any Equatable.Type { return equality(of: type) }
  if Value.self is any PartlyEquatable.Type {
    return { first, second in
      (first as? any PartlyEquatable).map { $0.equals(second) } ?? false
    }
  }
  return { _, _ in false }
}
