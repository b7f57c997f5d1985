/// An object that keeps a handler registered.
///
/// Cancelling the token, or releasing its last reference, removes the handler: no call of it starts after ``cancel()``
/// has returned. This is exact on the handler's own actor and inside the handler. From another thread, a call that was
/// about to begin can still begin. If the handler is suspended in a call, its task is cancelled.
///
/// Two tokens are equal if they are the same object.
///
/// ## Topics
///
/// ### Ending an observation
/// - ``cancel()``
/// - ``isCancelled``
/// - ``store(in:)``
///
/// ### Creating a token
/// - ``init(onCancel:)``
public final class ObservationToken: Sendable {
  private let registration: Registration

  /// Creates a token that calls a closure once, when it is cancelled or released.
  ///
  /// - Parameter onCancel: The closure. It is called on the cancelling thread and then released.
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

  /// Removes the handler; later calls have no effect.
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

  /// Adds the token to a bag, which cancels it together with others.
  ///
  /// - Parameter bag: The bag, which keeps the token until either is cancelled or the source has ended.
  public func store(in bag: ObservationBag) {
    bag.insert(self)
  }
}

extension ObservationToken: Hashable {
  /// Returns whether both tokens are the same object.
  public static func == (left: ObservationToken, right: ObservationToken) -> Bool {
    left === right
  }

  /// Hashes the identity of the token.
  ///
  /// - Parameter hasher: The hasher.
  public func hash(into hasher: inout Hasher) {
    hasher.combine(ObjectIdentifier(self))
  }
}
