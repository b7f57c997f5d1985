extension Handler.Ending {
  @inlinable
  init(_ result: HandlerResult) {
    self = result == .handledSuccessfully ? .succeeded : .failed
  }
}

extension Handler.Recipe {
  /// The parts of a synchronous handler of events; an error counts as a failure.
  @inlinable
  @inline(__always)
  init<E: Event, Result>(
    calling handler: @escaping @isolated(any) @Sendable (E) throws -> Result,
    _ bufferingPolicy: BufferingPolicy<E>,
    _ ending: @escaping @Sendable (Result) -> Handler.Ending
  ) {
    let call = directly(handler)
    self.init(
      isolation: handler.isolation,
      bufferingPolicy,
      .synchronous { box in
        do {
          return ending(try call(Box<E>.element(of: box)))
        } catch {
          return .failed
        }
      }
    )
  }

  /// The parts of an asynchronous handler of events.
  @inlinable
  @inline(__always)
  init<E: Event, Result: Sendable>(
    calling handler: @escaping @isolated(any) @Sendable (E) async throws -> Result,
    _ bufferingPolicy: BufferingPolicy<E>,
    _ ending: @escaping @Sendable (Result) -> Handler.Ending
  ) {
    self.init(
      isolation: handler.isolation,
      bufferingPolicy,
      .suspending { box in
        do {
          return ending(try await handler(Box<E>.element(of: box)))
        } catch {
          return .failed
        }
      }
    )
  }

  /// The parts of a synchronous handler of events that ends with its owner.
  @inlinable
  init<Owner: AnyObject & Sendable, E: Event, Result>(
    calling handler: @escaping @isolated(any) @Sendable (Owner, E) throws -> Result,
    as owner: Owner,
    _ bufferingPolicy: BufferingPolicy<E>,
    _ ending: @escaping @Sendable (Result) -> Handler.Ending
  ) {
    let call = directly(handler)
    self.init(isolation: handler.isolation, bufferingPolicy, as: owner) { owner, event in
      do {
        return ending(try call(owner, event))
      } catch {
        return .failed
      }
    }
  }

  /// The parts of an asynchronous handler of events that ends with its owner.
  @inlinable
  init<Owner: AnyObject & Sendable, E: Event, Result: Sendable>(
    calling handler: @escaping @isolated(any) @Sendable (Owner, E) async throws -> Result,
    as owner: Owner,
    _ bufferingPolicy: BufferingPolicy<E>,
    _ ending: @escaping @Sendable (Result) -> Handler.Ending
  ) {
    self.init(isolation: handler.isolation, bufferingPolicy, as: owner) { owner, event in
      do {
        return ending(try await handler(owner, event))
      } catch {
        return .failed
      }
    }
  }
}
