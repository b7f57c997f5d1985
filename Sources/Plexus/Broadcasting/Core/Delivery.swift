/// What remains to be done after an element was appended, once no lock is held any more.
///
/// Tasks are resumed and whatever the append replaced is released here: both may run a user's code.
@usableFromInline
struct Delivery<Element: Sendable>: Sendable {
  /// The parked tasks that have something to read now, in subscription order.
  @usableFromInline var woken: ContiguousArray<Waiter.ParkedTask> = []
  /// The chunk that the log has filled.
  @usableFromInline var filled: LogLink?
  /// The elements that had to give way.
  @usableFromInline var displaced: ContiguousArray<Element> = []
  /// What remains to be done for handlers, apart from resuming their tasks.
  @usableFromInline var handlers: HandlerQueue.Effects?

  @inlinable
  init() {}

  /// Resumes the tasks and calls what this thread has to call; called once, with no lock held.
  @inlinable
  consuming func deliver() {
    if let handlers { return handlers.perform(resuming: woken) }
    for task in woken { task.resume() }
  }
}
