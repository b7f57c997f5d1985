/// What keeps a handler registered.
///
/// Cancelling the token, or releasing its last reference, removes the handler. When any call of ``cancel()``
/// has returned, the handler is not started again. That is exact when it is called on the handler's own actor
/// or from inside the handler; from another thread a handler can be about to enter its first line. A
/// handler that is running and suspended has its task cancelled.
///
/// Two tokens are equal if they are the same object.
public final class ObservationToken: Sendable {
  private let registration: Registration

  /// Creates a token that calls a closure once: when it is cancelled or released.
  ///
  /// - Parameter onCancel: What to do. It is called on the thread that cancels, and released then.
  public init(onCancel: @escaping @Sendable () -> Void) {
    registration = Registration.Closure(onCancel)
  }

  @usableFromInline
  init(_ registration: Registration) {
    self.registration = registration
  }

  deinit {
    registration.cancel()
  }

  /// Removes the handler; later calls do nothing.
  public func cancel() {
    registration.cancel()
  }

  /// Whether the token has been cancelled.
  public var isCancelled: Bool {
    registration.isCancelled
  }

  /// Whether the token has been cancelled, or the source of its handler has ended.
  var isOver: Bool {
    registration.isOver
  }

  /// Hands the token to a bag, which cancels it together with others.
  ///
  /// - Parameter bag: The bag, which keeps the token until it is cancelled or the source has ended.
  public func store(in bag: ObservationBag) {
    bag.insert(self)
  }
}

extension ObservationToken: Hashable {
  /// Returns whether both are the same object.
  public static func == (left: ObservationToken, right: ObservationToken) -> Bool {
    left === right
  }

  /// Feeds the identity of the token into a hasher.
  ///
  /// - Parameter hasher: The hasher.
  public func hash(into hasher: inout Hasher) {
    hasher.combine(ObjectIdentifier(self))
  }
}
