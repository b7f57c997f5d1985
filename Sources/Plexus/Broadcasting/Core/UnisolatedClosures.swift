// The unsafe casts drop the isolation of a synchronous closure. The closure is called in the same way: the actor is
// stored beside the captured values, and only callers in another isolation use it, to hop there. The queue of a
// handler calls the closure in a task on that very actor (`HandlerQueue` is given the
// `isolation` of the closure), so that no hop is needed. Without the cast each call costs three times as much.

/// Returns a closure without its isolation, for calls that are made on its actor.
@inlinable
@inline(__always)
func directly<Element>(
  _ handler: @escaping @isolated(any) @Sendable (Element) -> Void
) -> @Sendable (Element) -> Void {
  unsafe unsafeBitCast(handler, to: (@Sendable (Element) -> Void).self)
}

/// Returns a closure without its isolation, for calls that are made on its actor.
@inlinable
@inline(__always)
func directly<Owner, Element>(
  _ handler: @escaping @isolated(any) @Sendable (Owner, Element) -> Void
) -> @Sendable (Owner, Element) -> Void {
  unsafe unsafeBitCast(handler, to: (@Sendable (Owner, Element) -> Void).self)
}

/// Returns a closure without its isolation, for calls that are made on its actor.
@inlinable
@inline(__always)
func directly<Element, Result>(
  _ handler: @escaping @isolated(any) @Sendable (Element) throws -> Result
) -> @Sendable (Element) throws -> Result {
  unsafe unsafeBitCast(handler, to: (@Sendable (Element) throws -> Result).self)
}

/// Returns a closure without its isolation, for calls that are made on its actor.
@inlinable
@inline(__always)
func directly<Owner, Element, Result>(
  _ handler: @escaping @isolated(any) @Sendable (Owner, Element) throws -> Result
) -> @Sendable (Owner, Element) throws -> Result {
  unsafe unsafeBitCast(handler, to: (@Sendable (Owner, Element) throws -> Result).self)
}
