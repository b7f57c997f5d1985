/// What keeps a handler registered.
///
/// Cancelling the token, or releasing its last reference, removes the handler: none is started
/// after ``cancel()`` has returned. That is exact when it is called on the handler's own actor or from
/// inside the handler; from another thread a handler may be about to enter its first line. A
/// handler that is running and suspended has its task cancelled.
///
/// Two tokens are equal if they are the same object.
public final class ObservationToken: Sendable {
  /// The closure in a structure of its own.
  ///
  /// Where generic code is not specialised, a bare closure is wrapped once more each time that it is
  /// looked at; with enough of them the call overflows the stack.
  private struct Action: Sendable {
    let run: @Sendable () -> Void
  }

  private let action: Locked<Action?>

  /// Creates a token that calls a closure once: when it is cancelled or released.
  ///
  /// - Parameter onCancel: What to do. It is called on the thread that cancels, and released then.
  public init(onCancel: @escaping @Sendable () -> Void) {
    action = Locked(Action(run: onCancel))
  }

  deinit {
    cancel()
  }

  /// Removes the handler; later calls do nothing.
  public func cancel() {
    let action = action.withLock { action in
      defer { action = nil }
      return action
    }
    action?.run()
  }

  /// Whether the token has been cancelled.
  public var isCancelled: Bool {
    action.withLock { $0 == nil }
  }

  /// Hands the token to a bag, which cancels it together with others.
  ///
  /// - Parameter bag: The bag, which keeps the token until it is cancelled.
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
