/// An object whose release a test observes by a weak reference: the owner of a handler, or what a closure captures.
public final class Owner: Sendable {
  /// Creates an object.
  public init() {}
}
