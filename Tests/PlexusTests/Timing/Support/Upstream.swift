import Plexus
import PlexusTesting
import TestSupport
import Testing

/// A sequence whose elements are sent by a test.
struct UpstreamHandler: AsyncSequence, Sendable {
  let elements: AsyncThrowingStream<Int, any Error>
  let continuation: AsyncThrowingStream<Int, any Error>.Continuation

  init() {
    (elements, continuation) = AsyncThrowingStream.makeStream()
  }

  func makeAsyncIterator() -> AsyncThrowingStream<Int, any Error>.Iterator {
    elements.makeAsyncIterator()
  }

  func send(_ numbers: Int...) {
    for number in numbers { continuation.yield(number) }
  }
}

/// A sequence whose first `next()` returns when the test resumes it, and ignores cancellation.
struct StubbornSequence: AsyncSequence, Sendable {
  let waiting = Log<CheckedContinuation<Void, Never>>()
  let cancellations = Log<Bool>()

  struct Iterator: AsyncIteratorProtocol {
    let sequence: StubbornSequence

    mutating func next() async -> Int? {
      await withCheckedContinuation { sequence.waiting.append($0) }
      sequence.cancellations.append(Task.isCancelled)
      return nil
    }

    mutating func next(isolation actor: isolated (any Actor)?) async -> Int? { await next() }
  }

  func makeAsyncIterator() -> Iterator { Iterator(sequence: self) }
}

/// Whether a sequence is debounced or throttled.
enum TimedSequenceKind: CaseIterable, Sendable {
  case debounced
  case throttled

  /// Records the elements of the debounced or throttled sequence with a delay or interval of one second.
  func record<Base: AsyncSequence & Sendable>(
    _ base: Base,
    clock: any Clock<Duration>
  ) -> Recorder<Base.Element> where Base.Element: Sendable {
    switch self {
    case .debounced: Recorder(base.debounced(for: .seconds(1), clock: clock))
    case .throttled: Recorder(base.throttled(for: .seconds(1), leading: false, clock: clock))
    }
  }
}
