/// The work that remains after an element was appended, to be done with no lock held.
///
/// Tasks are resumed and displaced elements are released here, because both can run user code.
@usableFromInline
struct Delivery<Element: Sendable>: Sendable {
  /// The parked tasks that have something to read now, in subscription order.
  @usableFromInline var woken: ContiguousArray<Waiter.ParkedTask> = []
  /// The chunk of the log that the element has filled.
  @usableFromInline var filled: LogLink?
  /// The elements that were removed from the window and from buffers.
  @usableFromInline var displaced: ContiguousArray<Element> = []
  /// The work that remains for handlers, apart from resuming their tasks.
  @usableFromInline var handlers: HandlerQueue.Effects?

  @inlinable
  init() {}

  /// Resumes the tasks and does the work for handlers; called once, with no lock held.
  @inlinable
  func deliver() {
    if let handlers { return handlers.perform(resuming: woken) }
    for task in woken { task.resume() }
  }
}
