#if canImport(Dispatch)
internal import Dispatch
#endif

/// A queue that calls closures on the main actor, one after another, in one task for the whole process.
final class MainActorQueue: Sendable {
  typealias Call = @MainActor @Sendable () -> Void

  static let shared = MainActorQueue()

  private let handler: Handler

  private init() {
    let recipe = Handler.Recipe(
      isolation: MainActor.shared,
      .suspending { box in
        await Box<Call>.element(of: box)()
        return .succeeded
      }
    )
    handler = HandlerQueue.handler(recipe)
    handler.queue.start()
  }

  func append(_ call: @escaping Call) {
    handler.queue.send(Box(call))
  }

  #if canImport(Dispatch)
  // The main actor runs on the main queue, which need not be one thread.
  private static let mark: DispatchSpecificKey<Bool> = {
    let key = DispatchSpecificKey<Bool>()
    DispatchQueue.main.setSpecific(key: key, value: true)
    return key
  }()

  /// Whether the caller runs on the main actor.
  static var isCurrent: Bool {
    DispatchQueue.getSpecific(key: mark) == true
  }
  #else
  /// Whether the caller runs on the main actor, as far as that can be determined.
  static var isCurrent: Bool { false }
  #endif
}
