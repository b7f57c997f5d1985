// @unchecked Sendable because Swift requires it of a class with subclasses: a report itself never changes.

internal import Synchronization

extension HandlerQueue {
  /// The calls of a handler that can suspend, one after the other.
  final class Calls: Sendable {
    /// The number of the element that the handler is called with, or was called with last.
    let sequence = Atomic<Int>(0)
    private let note = Locked<(any AnyObject & Sendable)?>(nil)

    /// The note of the source on the current call, or on the last one.
    var latest: (any AnyObject & Sendable)? {
      note.withLock { $0 }
    }

    /// Records the beginning of a call.
    ///
    /// - Parameter call: The note of the source on the call.
    func begin(_ call: any AnyObject & Sendable) {
      note.release { note in
        defer { note = call }
        return note
      }
    }
  }
}

extension HandlerQueue {
  /// The receiver of an element, and the report on the results of the calls.
  @usableFromInline
  class Report: @unchecked Sendable {
    /// The only handler that gets the element; `nil` if all do.
    final let receiver: Handler?

    init(receiver: Handler? = nil) {
      self.receiver = receiver
    }

    /// Whether the element is offered to the receiver, whose result is awaited.
    var isOffer: Bool { false }

    /// Notes the number of an element that is about to be sent; called under the lock of the hub.
    func begin(sequence: Int) {}

    /// Adds the part of a queue, which ends before or after the others; called under the lock of the hub.
    func addPart() {}

    /// Begins the report, before the first handler is called.
    ///
    /// - Returns: Whether the element is still to be handled.
    func begin() -> Bool { true }

    /// Ends the report, after the last handler has returned; called with no lock held.
    ///
    /// - Parameters:
    ///   - notified: The number of handlers that were called.
    ///   - handled: The number of successes among them.
    func end(notified: Int, handled: Int) {}
  }

  /// The end of a handler that shares the queue with handlers of other hubs.
  final class End: Report, @unchecked Sendable {
    // No limit of the handler discards it.
    override var isOffer: Bool { true }

    override func begin() -> Bool {
      receiver?.finish()
      receiver?.remove()
      return false
    }
  }
}
