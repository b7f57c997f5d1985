import Foundation
import Plexus
import Synchronization

/// Rows for the longest time of one call, or of one turn on the main actor, under load.
///
/// The times are processor times, so that other programs on the machine have no effect.
func fairnessComparisons() -> [Comparison] {
  let work = "main actor held/"
  return [
    .limit(work + "Messenger.observe", atMost: longestHold, unit: .nanoseconds) {
      await holdByMessengerHandler()
    },
    .limit(work + "EventBus.observe", atMost: longestHold, unit: .nanoseconds) {
      await holdByEventHandler()
    },
    .limit(work + "Subscription", atMost: longestHold, unit: .nanoseconds) {
      await holdBySubscription()
    },
    Comparison(
      name: work + "Subscription/AsyncStream",
      peer: "AsyncStream",
      goal: 0,
      ours: { await holdBySubscription() },
      theirs: { await holdByStream() }
    ),
    .limit("longest/Store.dispatch", atMost: longestCall, unit: .nanoseconds) {
      let store = Store<Int, Int>(0) { $0 = handle($0 &+ $1) }
      return await longestCallBesideAnother { store.dispatch($0) }
    },
    .limit("longest/StateConsumer.consume", atMost: longestCall, unit: .nanoseconds) {
      let consumer = StateConsumer(initialState: 0)
      for offset in 0..<10 { consumer.add({ handle($0 &+ offset) == 0 }) { _, _ in } }
      return await longestCallBesideAnother { consumer.consume($0) }
    },
    Comparison(
      name: "longest/Store.dispatch/Mutex",
      peer: "a state behind a Mutex",
      goal: 0,
      ours: {
        let store = Store<Int, Int>(0) { $0 = handle($0 &+ $1) }
        return await longestCallBesideAnother { store.dispatch($0) }
      },
      theirs: {
        let state = LockedState()
        return await longestCallBesideAnother { state.dispatch($0) }
      }
    ),
  ]
}

/// 10 ms, so that a screen with 60 frames per second drops no frame.
private let longestHold = 10_000_000.0

/// One millisecond for the actions of other callers, and another for the action itself and the measurement.
private let longestCall = 2_000_000.0

// MARK: - The main actor

private let queuedMessages = 50_000

/// Handles a message or an action for about a microsecond, which is longer than enqueuing one takes.
@inline(never)
private func handle(_ number: Int) -> Int {
  var value = number
  for _ in 0..<500 {
    value ^= value << 13
    value ^= value >> 7
  }
  return value
}

/// An event of the same kind.
private struct Work: Event {
  let number: Int
}

/// The number of messages that have been handled, on the main actor.
@MainActor
private final class Progress {
  private(set) var handled = 0
  private var sum = 0

  func handle(_ number: Int) {
    sum &+= PlexusBenchmarks.handle(number)
    handled += 1
  }
}

/// Returns the longest time between two turns of a task that yields the main actor without pause.
@MainActor
private func longestHold(until progress: Progress) async -> Double {
  var longest: UInt64 = 0
  var last = processTime()
  while progress.handled < queuedMessages {
    await Task.yield()
    let now = processTime()
    longest = max(longest, now - last)
    last = now
  }
  return Double(longest)
}

@MainActor
private func holdByMessengerHandler() async -> Double {
  let messenger = Messenger<Int>()
  let progress = Progress()
  let token = messenger.observe { @MainActor number in progress.handle(number) }
  for number in 0..<queuedMessages { messenger.send(number) }
  defer { withExtendedLifetime(token) {} }
  return await longestHold(until: progress)
}

@MainActor
private func holdByEventHandler() async -> Double {
  let bus = EventBus()
  let progress = Progress()
  let token = bus.observe(Work.self) { @MainActor event in progress.handle(event.number) }
  for number in 0..<queuedMessages { bus.post(Work(number: number)) }
  defer { withExtendedLifetime(token) {} }
  return await longestHold(until: progress)
}

@MainActor
private func holdBySubscription() async -> Double {
  let messenger = Messenger<Int>()
  return await hold(by: messenger.subscription()) { messenger.send($0) }
}

@MainActor
private func holdByStream() async -> Double {
  let (stream, continuation) = AsyncStream.makeStream(of: Int.self)
  return await hold(by: stream) { continuation.yield($0) }
}

@MainActor
private func hold<S: AsyncSequence & Sendable>(
  by sequence: S,
  _ send: (Int) -> Void
) async -> Double where S.Element == Int, S.Failure == Never {
  let progress = Progress()
  for number in 0..<queuedMessages { send(number) }
  let loop = Task { @MainActor in
    for await number in sequence { progress.handle(number) }
  }
  let longest = await longestHold(until: progress)
  loop.cancel()
  await loop.value
  return longest
}

// MARK: - One call

/// The peer of a store: a state behind the standard library's lock.
private final class LockedState: Sendable {
  private let state = Mutex(0)

  func dispatch(_ action: Int) {
    state.withLock { $0 = handle($0 &+ action) }
  }
}

/// Returns the longest time that one of two threads needs for a call, while the other one makes the same call
/// without pause.
///
/// Both stop after a tenth of a second, or when a longer call returns. Whether two calls overlap is random on a
/// busy machine, so the result is the longest call of five rounds.
private func longestCallBesideAnother(_ call: @escaping @Sendable (Int) -> Void) async -> Double {
  var longest = 0.0
  for _ in 0..<5 {
    async let one = longestCall(call)
    async let other = longestCall(call)
    longest = await max(longest, one, other)
  }
  return longest
}

private func longestCall(_ call: @escaping @Sendable (Int) -> Void) async -> Double {
  await withCheckedContinuation { continuation in
    Thread.detachNewThread {
      let end = ContinuousClock.now + .milliseconds(100)
      var longest: UInt64 = 0
      var number = 0
      // Reading the processor time before each call would slow the threads so much that nothing is queued.
      // A long call is rare, and its processor time is at most the time since the last reading.
      var lastReading = time(of: CLOCK_THREAD_CPUTIME_ID)
      while ContinuousClock.now < end {
        for _ in 0..<20 {
          let begin = time(of: CLOCK_MONOTONIC)
          call(number)
          number += 1
          let duration = time(of: CLOCK_MONOTONIC) - begin
          guard duration > 100_000 else { continue }
          let reading = time(of: CLOCK_THREAD_CPUTIME_ID)
          longest = max(longest, min(duration, reading - lastReading))
          lastReading = reading
        }
        lastReading = time(of: CLOCK_THREAD_CPUTIME_ID)
      }
      continuation.resume(returning: Double(longest))
    }
  }
}

// MARK: - Processor time

/// The processor time of all threads of this process, in nanoseconds.
private func processTime() -> UInt64 { time(of: CLOCK_PROCESS_CPUTIME_ID) }

private func time(of clock: clockid_t) -> UInt64 {
  var time = timespec()
  clock_gettime(clock, &time)
  return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
}
