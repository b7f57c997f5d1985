/// A weak reference that closures can capture before the object exists.
final class WeakReference<Object: AnyObject & Sendable>: Sendable {
  private struct State {
    weak var object: Object?
  }

  private let state = Locked(State())

  /// The object, unless it was released or has not been set.
  var object: Object? { state.withLock { $0.object } }

  func set(_ object: Object) {
    state.withLock { $0.object = object }
  }
}
