/// Where closures that belong to one actor are called, one after another, in one task.
final class ActorQueue: Sendable {
  /// A call, which happens on the actor of the queue.
  typealias Call = @Sendable () async -> Void

  /// Which actor it is; `nil` stands for none.
  ///
  /// No other actor gets this identity as long as the task is there, which holds this one.
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
