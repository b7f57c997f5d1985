public import Observation

/// An `Observable` object with the current value of a state, for SwiftUI views.
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
/// print(await text.value)  // Prints "h"
/// ```
///
/// ## Reading
///
/// ``value`` is always the current value of the source. On the main actor, it is the new one as soon as the call that
/// changed it has returned, so that a text field can be bound to it.
///
/// ## Invalidation
///
/// If a change is made on the main actor, observers are notified before that call returns; otherwise, in the next turn
/// of the main actor. If the type is `Equatable`, an equal value invalidates nothing. If the state is large, select the
/// part that a view shows with ``StatefulBroadcaster/select(_:)-(KeyPath<Self.Element,V>Sendable)``, so that changes of
/// other parts do not invalidate the view.
///
/// ## Lifetime
///
/// The observed value keeps the source alive and is subscribed to it during its own lifetime. When the source has
/// finished, the last value remains.
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
  /// The value of which observers were last notified.
  @ObservationIgnored private var told: Value
  /// Whether an observer has read another value since.
  @ObservationIgnored private var hasToldAnother = false
  /// The number of refreshes so far.
  @ObservationIgnored private var refreshes = 0
  /// The subscriptions that end with this object.
  @ObservationIgnored private var tokens: [ObservationToken] = []

  /// Creates an observed value of a state.
  ///
  /// - Parameter source: The state, which is kept alive.
  public convenience init(_ source: some StatefulBroadcaster<Value>) {
    self.init(following: source)
  }

  /// Creates an observed value of a source without a state, such as a ``Messenger``.
  ///
  /// - Parameters:
  ///   - source: The source, which is not kept alive.
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
    areEqual = equality(of: Value.self)
    tokens.append(source.observe(by: ChangeNotice { [weak self] in self?.refresh() }))
  }

  /// The current value of the source.
  public var value: Value {
    access(keyPath: \.value)
    let value = source.current
    // An observer that was not notified of it yet may see the former value again when the others are.
    if !areEqual(value, told) { hasToldAnother = true }
    return value
  }

  /// Notifies the observers if the value has changed.
  private func refresh() {
    refreshes &+= 1
    let number = refreshes
    let value = source.current
    let isNew = hasToldAnother || !areEqual(value, told)
    // Reading and comparing call user code. If that has set a newer value, its refresh has done the work.
    guard isNew, number == refreshes else { return }
    // Noted first: an observer can set another value, of which the others are then notified.
    told = value
    hasToldAnother = false
    withMutation(keyPath: \.value) {}
  }
}

extension Broadcaster {
  /// Registers a handler that the sending threads call.
  fileprivate nonisolated func observe(by calls: any Handler.SenderCalls) -> ObservationToken {
    let recipe = Handler.Recipe(isolation: nil, .direct(calls))
    return ObservationToken(subscription(bufferingPolicy: .unbounded).handler(recipe))
  }
}
