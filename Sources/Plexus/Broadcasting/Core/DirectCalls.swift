// The unsafe casts forget that a synchronous closure belongs to an actor. That changes nothing in how it is called:
// the actor is stored beside what the closure captures, and only callers elsewhere use it, to get there. The
// queue of a handler calls it in a task on that very actor (`HandlerQueue.start(isolation:)` is given the
// `isolation` of the closure), so that there is nowhere to go. Without the cast each call costs three times as
// much.

/// Returns a closure as one that is called on its actor.
@inlinable
@inline(__always)
func directly<Element>(
  _ handler: @escaping @isolated(any) @Sendable (Element) -> Void
) -> @Sendable (Element) -> Void {
  unsafe unsafeBitCast(handler, to: (@Sendable (Element) -> Void).self)
}

/// Returns a closure as one that is called on its actor.
@inlinable
@inline(__always)
func directly<Owner, Element>(
  _ handler: @escaping @isolated(any) @Sendable (Owner, Element) -> Void
) -> @Sendable (Owner, Element) -> Void {
  unsafe unsafeBitCast(handler, to: (@Sendable (Owner, Element) -> Void).self)
}

/// Returns a closure as one that is called on its actor.
@inlinable
@inline(__always)
func directly<Element, Result>(
  _ handler: @escaping @isolated(any) @Sendable (Element) throws -> Result
) -> @Sendable (Element) throws -> Result {
  unsafe unsafeBitCast(handler, to: (@Sendable (Element) throws -> Result).self)
}

/// Returns a closure as one that is called on its actor.
@inlinable
@inline(__always)
func directly<Owner, Element, Result>(
  _ handler: @escaping @isolated(any) @Sendable (Owner, Element) throws -> Result
) -> @Sendable (Owner, Element) throws -> Result {
  unsafe unsafeBitCast(handler, to: (@Sendable (Owner, Element) throws -> Result).self)
}
