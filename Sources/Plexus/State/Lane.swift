/// Where closures that belong to one actor are called, one after another, in one task.
final class Lane: Sendable {
  /// A call, which happens on the actor of the lane.
  typealias Call = @Sendable () async -> Void

  /// Which actor it is; `nil` stands for none.
  ///
  /// No other actor gets this identity as long as the task is there, which holds this one.
  let key: ObjectIdentifier?
  private let hub = BroadcastHub<Call>()
  private let handler: AddedHandler<Call>

  init(isolation: (any Actor)?) {
    key = isolation.map { ObjectIdentifier($0) }
    handler = hub.addHandler(
      .owned { call, _ in
        await call()
        return true
      },
      isolation: isolation,
      bufferingPolicy: .unbounded,
      replaying: []
    )
  }

  deinit {
    hub.finish()
  }

  /// Starts the task, once, with no lock held.
  func start() {
    hub.start(handler)
  }

  func append(_ call: @escaping Call) {
    hub.send(call)
  }
}
