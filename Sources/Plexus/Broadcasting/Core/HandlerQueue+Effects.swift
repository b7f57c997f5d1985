// @unchecked Sendable because effects belong to one thread: the one whose change created them.

extension HandlerQueue {
  /// The work that remains for handlers after a change, to be done with no lock held; most changes leave none.
  @usableFromInline
  final class Effects: @unchecked Sendable {
    /// The queues whose task this thread starts, or whose handlers it calls.
    @exclusivity(unchecked) @safe
    @usableFromInline var queues: ContiguousArray<HandlerQueue> = []
    /// The elements that no handler gets anymore.
    @exclusivity(unchecked) @safe
    var discarded: ContiguousArray<Item> = []
    /// Whether elements that were not handled have been taken back.
    @exclusivity(unchecked) @safe
    var takesBack = false

    private init() {}

    /// Returns the effects of a change, creating them if there are none yet.
    static func of(_ effects: inout Effects?) -> Effects {
      if let effects { return effects }
      let new = Effects()
      effects = new
      return new
    }

    /// Does the remaining work; called once, with no lock held.
    ///
    /// - Parameter woken: The tasks to resume. Tasks before a queue in subscription order are resumed before its task.
    @usableFromInline
    func perform(resuming woken: ContiguousArray<Waiter.ParkedTask> = []) {
      var next = 0
      for queue in queues where queue.direct == nil {
        while next < woken.count, woken[next].id < queue.id {
          woken[next].resume()
          next += 1
        }
        queue.attend()
      }
      for task in woken[next...] { task.resume() }
      for item in discarded { item.report?.end(notified: 0, handled: 0) }
      for queue in queues where queue.direct != nil {
        if takesBack { queue.direct?.takeBack(in: queue) }
        queue.attend()
      }
    }
  }
}
