// Handlers that end with an owner. One whose owner is gone returns `.unreached`, and is then removed; `HubBase` also looks
// for such handlers when their number is read.

extension Handler.Recipe {
  /// The parts of a synchronous handler that ends with its owner.
  @inlinable
  @inline(__always)
  init<Owner: AnyObject & Sendable, Element: Sendable>(
    isolation: (any Actor)?,
    _ bufferingPolicy: BufferingPolicy<Element>,
    as owner: Owner,
    _ call: @escaping @Sendable (Owner, Element) -> Handler.Ending
  ) {
    weak let weakOwner = owner
    self.init(
      isolation: isolation,
      bufferingPolicy,
      isOrphaned: { weakOwner == nil },
      .synchronous { box in
        guard let owner = weakOwner else { return .unreached }
        return call(owner, Box<Element>.element(of: box))
      }
    )
  }

  /// The parts of an asynchronous handler that ends with its owner, which stays alive during a call.
  @inlinable
  @inline(__always)
  init<Owner: AnyObject & Sendable, Element: Sendable>(
    isolation: (any Actor)?,
    _ bufferingPolicy: BufferingPolicy<Element>,
    as owner: Owner,
    _ call: @escaping @Sendable (Owner, Element) async -> Handler.Ending
  ) {
    weak let weakOwner = owner
    self.init(
      isolation: isolation,
      bufferingPolicy,
      isOrphaned: { weakOwner == nil },
      .suspending { box in
        guard let owner = weakOwner else { return .unreached }
        return await call(owner, Box<Element>.element(of: box))
      }
    )
  }
}
