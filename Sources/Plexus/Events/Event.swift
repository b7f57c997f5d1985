/// Something that happens, told to whoever listens for events of its type.
///
/// Any `Sendable` type can be an event:
///
/// ```swift
/// struct LoggedIn: Event {
///   let name: String
/// }
///
/// let bus = EventBus()
/// bus.post(LoggedIn(name: "Ada"))
/// ```
///
/// An event reaches the subscribers of exactly its own type. Unless it says otherwise, it is gone when
/// those who are subscribed have had it.
public protocol Event: Sendable {
  /// Whether, how long and up to which number events are kept for those who subscribe later.
  ///
  /// The bus asks each event once, when it is posted. The default is ``EventPersistence/none``.
  var persistence: EventPersistence { get }
}

extension Event {
  /// An event is not kept, unless its type says otherwise.
  public var persistence: EventPersistence { .none }
}
