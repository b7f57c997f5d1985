import PlexusTesting
import TestSupport

/// Signals that are sent one after the other.
struct LiveSignals: AsyncSequence, Sendable {
  private let gate = Gate()
  private let sent = Tally()

  struct Iterator: AsyncIteratorProtocol {
    fileprivate let gate: Gate

    func next() async throws -> Void? {
      try await gate.wait()
      return ()
    }
  }

  func makeAsyncIterator() -> Iterator { Iterator(gate: gate) }

  /// Waits until the signals are iterated, and all that were sent have been handled.
  func areHandled() async {
    await gate.arrivals(sent.value + 1)
  }

  /// Sends a signal, and waits until it has been handled.
  func send() async {
    await areHandled()
    sent.increment()
    gate.admit(1)
    await areHandled()
  }
}
