import PlexusTesting
import TestSupport
import Testing

@Suite(.fewAtOnce)
struct `A recorder` {
  let stream: AsyncStream<Int>
  let source: AsyncStream<Int>.Continuation

  init() {
    (stream, source) = AsyncStream.makeStream()
  }

  @Test(.guarantee(.recordersCollectInOrder))
  func `a recorder collects the elements of the sequence, in order`() async {
    let recorder = Recorder(stream)
    for number in 1...3 { source.yield(number) }
    #expect(await recorder.first(3) == [1, 2, 3])
    #expect(recorder.elements == [1, 2, 3])
    #expect(!recorder.isFinished)
  }

  @Test func `a recorder collects elements that were yielded before it was created`() async {
    source.yield(1)
    source.finish()
    #expect(await Recorder(stream).finished() == [1])
  }

  @Test(.guarantee(.recordersCollectInOrder))
  func `a recorder returns the requested number of elements if there are more`() async {
    let recorder = Recorder(stream)
    #expect(await recorder.first(0) == [])
    for number in 1...5 { source.yield(number) }
    #expect(await recorder.first(5).count == 5)
    #expect(await recorder.first(2) == [1, 2])
  }

  @Test func `a recorder waits for the requested number of elements and not for the end`() async {
    let recorder = Recorder(stream)
    let first = Task { await recorder.first(2) }
    let more = Task { await recorder.first(3) }
    source.yield(1)
    source.yield(2)
    #expect(await first.value == [1, 2])
    source.yield(3)
    #expect(await more.value == [1, 2, 3])
  }

  @Test(.guarantee(.recordersCollectInOrder))
  func `a recorder returns fewer elements if the sequence ends early`() async {
    let recorder = Recorder(stream)
    let waiting = Task { await recorder.first(3) }
    source.yield(1)
    source.finish()
    #expect(await waiting.value == [1])
    #expect(await recorder.first(3) == [1])
    #expect(await recorder.finished() == [1])
    #expect(recorder.isFinished)
    #expect(recorder.error == nil)
  }

  @Test
  func `a recorder returns fewer elements when the waiting task is cancelled, and still records`()
    async
  {
    let recorder = Recorder(stream)
    source.yield(1)
    _ = await recorder.first(1)
    let first = Task { await recorder.first(2) }
    let finished = Task { await recorder.finished() }
    first.cancel()
    finished.cancel()
    #expect(await first.value == [1])
    #expect(await finished.value == [1])
    source.yield(2)
    #expect(await recorder.first(2) == [1, 2])
  }

  @Test func `a recorder returns the error with which the sequence ended`() async {
    let (stream, source) = AsyncThrowingStream.makeStream(of: Int.self)
    let recorder = Recorder(stream)
    source.yield(1)
    source.finish(throwing: Broken())
    #expect(await recorder.finished() == [1])
    #expect(recorder.error as? Broken == Broken())
    #expect(recorder.isFinished)
  }

  @Test func `cancelling ends the recording and the sequence`() async {
    let terminated = Gate()
    source.onTermination = { _ in terminated.open() }
    let recorder = Recorder(stream)
    source.yield(1)
    _ = await recorder.first(1)
    recorder.cancel()
    try? await terminated.wait()
    source.yield(2)
    #expect(await recorder.finished() == [1])
    #expect(recorder.isFinished)
  }

  @Test(.guarantee(.recordersCollectInOrder))
  func `nothing is recorded after cancel, even if the sequence ignores cancellation`() async {
    let deaf = Deaf()
    let recorder = Recorder(deaf)
    deaf.gate.admit()
    #expect(await recorder.first(1) == [1])
    let waiting = Task { await recorder.first(2) }
    await deaf.gate.arrivals(2)
    recorder.cancel()
    #expect(await waiting.value == [1])
    #expect(await recorder.first(5) == [1])
    #expect(!recorder.isFinished)
    deaf.gate.open()
    #expect(await recorder.finished() == [1])
    #expect(recorder.isFinished)
  }

  @Test func `cancelling a recorder twice, or after the end, changes nothing`() async {
    let recorder = Recorder(stream)
    source.yield(1)
    source.finish()
    _ = await recorder.finished()
    recorder.cancel()
    recorder.cancel()
    #expect(recorder.elements == [1])
    #expect(recorder.isFinished)
    #expect(recorder.error == nil)
  }

  @Test func `releasing the recorder ends the sequence`() async throws {
    let (terminated, isCancelled) = (Gate(), Guarded(false))
    source.onTermination = { reason in
      if case .cancelled = reason { isCancelled.withLock { $0 = true } }
      terminated.open()
    }
    do {
      let recorder = Recorder(stream)
      source.yield(1)
      _ = await recorder.first(1)
    }
    try await terminated.wait()
    #expect(isCancelled.withLock { $0 })
  }

  @Test(arguments: [true, false])
  func `the sequence has been released when the recording has finished`(byCancelling: Bool) async {
    let wasFinished = Notes<Bool?>()
    let recorder: Recorder<Int>
    do {
      let witness = Witness()
      recorder = Recorder(stream.map { number in witness.pass(number) })
      witness.whenReleased { [weak recorder] in wasFinished.append(recorder?.isFinished) }
    }
    source.yield(1)
    _ = await recorder.first(1)
    #expect(wasFinished.entries == [])
    if byCancelling { recorder.cancel() } else { source.finish() }
    #expect(await recorder.finished() == [1])
    #expect(wasFinished.entries == [false])
  }

  @Test func `a recorder records the elements of a sequence of Void`() async {
    let (stream, source) = AsyncStream.makeStream(of: Void.self)
    let recorder = Recorder(stream)
    source.yield()
    source.yield()
    #expect(await recorder.first(2).count == 2)
  }

  @Test func `a recorder can be read and awaited from many threads while it records`() async {
    let (recorder, source, count) = (Recorder(stream), source, 2_000)
    let seen = await withTaskGroup(of: [Int].self) { group in
      for waiter in 1...100 {
        group.addTask { await recorder.first(waiter * count / 100) }
      }
      group.addTask {
        await onThreads(4) { thread in
          for step in 0..<(count / 4) {
            source.yield(thread)
            if step % 50 == 0 { _ = (recorder.elements.count, recorder.isFinished) }
          }
        }
        source.finish()
        return []
      }
      return await group.reduce(into: []) { $0.append($1.count) }
    }
    #expect(seen.sorted() == [0] + (1...100).map { $0 * count / 100 })
    #expect(await recorder.finished().count == count)
  }

  @Test(.startsProcess) func `a recorder cannot wait for a negative number of elements`() async {
    await #expect(processExitsWith: .failure) {
      _ = await Recorder(AsyncStream<Int> { _ in }).first(-1)
    }
  }
}

/// An object that reports its release.
private final class Witness: Sendable {
  private let onRelease = Guarded<(@Sendable () -> Void)?>(nil)

  deinit {
    onRelease.withLock { $0 }?()
  }

  func whenReleased(_ body: @escaping @Sendable () -> Void) { onRelease.withLock { $0 = body } }

  func pass(_ number: Int) -> Int { number }
}

/// A sequence of ascending numbers, one for each admission of its gate, that ignores cancellation.
private struct Deaf: AsyncSequence, Sendable {
  struct Iterator: AsyncIteratorProtocol {
    let gate: Gate
    var number = 0

    mutating func next() async -> Int? {
      let gate = gate
      await Task.detached { try? await gate.wait() }.value
      number += 1
      return number
    }
  }

  let gate = Gate()

  func makeAsyncIterator() -> Iterator { Iterator(gate: gate) }
}
