/// What keeps a handler registered.
///
/// Cancelling the token, or releasing its last reference, removes the handler: none is started
/// after ``cancel()`` has returned. That is exact when it is called on the handler's own actor or from
/// inside the handler; from another thread a handler may be about to enter its first line. A
/// handler that is running and suspended has its task cancelled.
///
/// Two tokens are equal if they are the same object.
public final class ObservationToken: Sendable {
  private let onCancel: Locked<(@Sendable () -> Void)?>

  /// Creates a token that calls a closure once: when it is cancelled or released.
  ///
  /// - Parameter onCancel: What to do. It is called on the thread that cancels, and released then.
  public init(onCancel: @escaping @Sendable () -> Void) {
    self.onCancel = Locked(onCancel)
  }

  deinit {
    cancel()
  }

  /// Removes the handler; later calls do nothing.
  public func cancel() {
    let action = onCancel.withLock { onCancel in
      defer { onCancel = nil }
      return onCancel
    }
    action?()
  }

  /// Whether the token has been cancelled.
  public var isCancelled: Bool {
    onCancel.withLock { $0 == nil }
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
