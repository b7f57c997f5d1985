#if canImport(Dispatch)
internal import Dispatch
#endif

extension ActorQueue {
  /// The calls that wait for the next turn of the main actor, in one queue for the whole process.
  static let ofMainActor: ActorQueue = {
    let queue = ActorQueue(isolation: MainActor.shared)
    queue.start()
    return queue
  }()

  #if canImport(Dispatch)
  // The main actor runs on the main queue, which need not be one thread.
  private static let mark: DispatchSpecificKey<Bool> = {
    let key = DispatchSpecificKey<Bool>()
    DispatchQueue.main.setSpecific(key: key, value: true)
    return key
  }()

  /// Whether the caller runs on the main actor.
  static var isOnMainActor: Bool {
    DispatchQueue.getSpecific(key: mark) == true
  }
  #else
  /// Whether the caller runs on the main actor, as far as that can be determined.
  static var isOnMainActor: Bool { false }
  #endif
}
