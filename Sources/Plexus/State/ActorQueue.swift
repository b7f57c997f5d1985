/// A queue that calls the closures of one actor, one after another, in one task.
final class ActorQueue: Sendable {
  /// A call, which happens on the actor of the queue.
  typealias Call = @Sendable () async -> Void

  /// The identity of the actor; `nil` for no actor.
  ///
  /// No other actor gets this identity while the task exists, because it keeps the actor alive.
  let key: ObjectIdentifier?
  private let isolation: (any Actor)?
  private let handler: Handler

  init(isolation: (any Actor)?) {
    self.isolation = isolation
    key = isolation.map { ObjectIdentifier($0) }
    handler = HandlerQueue.handler(
      Handler.Recipe(
        isolation: isolation,
        .suspending { box in
          await Box<Call>.element(of: box)()
          return .succeeded
        }
      )
    )
  }

  deinit {
    handler.queue.close()
  }

  /// Starts the task, once, with no lock held.
  func start() {
    handler.queue.start(isolation: isolation)
  }

  func append(_ call: @escaping Call) {
    handler.queue.send(Box(call))
  }
}
