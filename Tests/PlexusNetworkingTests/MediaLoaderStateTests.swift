import Foundation
import LoopbackOrigin
import Plexus
import PlexusTesting
import TestSupport
import Testing

@testable import PlexusNetworking

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

extension MediaLoader {
  /// Returns when so many downloads wait for their turn.
  fileprivate func waiting(_ count: Int) async {
    while core.gate.waitingCount < count { await Task.detached {}.value }
  }

  /// Returns when the gate has neither callers nor transfers.
  fileprivate func idle() async {
    while !core.gate.isEmpty { await Task.detached {}.value }
  }
}

@Suite(.fewAtOnce)
struct `The line of downloads` {
  let folder = MediaTestFolder()

  private func loader(
    connections: Int,
    retry: RetryPolicy = .never,
    clock: any Clock<Duration> = ContinuousClock(),
    _ transport: some HTTPTransport
  ) -> MediaLoader {
    MediaLoader(
      directory: folder.url,
      transport: transport,
      rules: .patient,
      connectionsPerHost: connections,
      retry: retry,
      clock: clock
    )
  }

  private func url(_ name: String) throws -> URL {
    try #require(URL(string: "http://nowhere.invalid/\(name)"))
  }

  /// A transport whose first transfer waits for a gate.
  private func blocking(_ gate: Gate) -> ClosureTransport {
    ClosureTransport { count, request, receiver in
      if count == 1 { try await gate.wait() }
      try receiver.take(request, "abc")
    }
  }

  @Test func `prefetching is overtaken by requests, however low their priority`() async throws {
    let gate = Gate()
    let transport = blocking(gate)
    let loader = loader(connections: 1, transport)
    let blocker = Task { try await loader.request(url("blocker")) }
    await gate.arrivals(1)
    loader.prefetch(try ["a", "b", "c"].map(url))
    await loader.waiting(3)
    let request = Task(priority: .background) { try await loader.request(url("d")) }
    let promoted = Task(priority: .high) { try await loader.request(url("c")) }
    await loader.waiting(4)
    while loader.core.gate.urgency(of: try url("c").absoluteString) == nil {
      await Task.detached {}.value
    }
    gate.open()
    _ = try await (blocker.value, request.value, promoted.value)
    #expect(transport.names.prefix(3) == ["blocker", "c", "d"])
    await loader.idle()
  }

  @Test func `images that are prefetched are overtaken, too, and promoted`() async throws {
    let gate = Gate()
    let transport = blocking(gate)
    let loader = loader(connections: 1, transport)
    let images = ImageLoader(media: loader) { $0.count }
    let blocker = Task { try await loader.request(url("blocker")) }
    await gate.arrivals(1)
    images.prefetch(try ["a", "b", "c"].map(url))
    await loader.waiting(3)
    let request = Task(priority: .background) { try await loader.request(url("d")) }
    await loader.waiting(4)
    let promoted = Task(priority: .high) { try await images.request(url("c")) }
    while loader.core.gate.urgency(of: try url("c").absoluteString) == nil {
      await Task.detached {}.value
    }
    gate.open()
    _ = try await (blocker.value, request.value, promoted.value)
    #expect(transport.names.prefix(3) == ["blocker", "c", "d"])
    await loader.idle()
  }

  @Test func `a caller leaves at once, wherever its download is`() async throws {
    let clock = ManualClock()
    let gate = Gate()
    let transport = ClosureTransport { count, request, receiver in
      if request.url?.lastPathComponent == "lost" { throw URLError(.networkConnectionLost) }
      try await gate.wait()
      try receiver.take(request, "abc")
    }
    let retry = RetryPolicy.exponential(
      attempts: 3,
      base: .seconds(1),
      cap: .seconds(1),
      jitter: 0
    )
    let loader = loader(connections: 1, retry: retry, clock: clock, transport)
    let never = Task {
      while !Task.isCancelled { await Task.detached {}.value }
      return try await loader.request(url("never"))
    }
    never.cancel()
    await #expect(throws: CancellationError.self) { try await never.value }
    let sleeping = Task { try await loader.request(url("lost")) }
    await clock.sleepers(1)
    let running = Task { try await loader.request(url("running")) }
    await gate.arrivals(1)
    let waiting = Task { try await loader.request(url("waiting")) }
    await loader.waiting(1)
    for task in [waiting, sleeping, running] {
      task.cancel()
      await #expect(throws: CancellationError.self) { try await task.value }
    }
    gate.open()
    _ = try await loader.request(url("running"))
    #expect(transport.names == ["lost", "running", "running"])
    await loader.idle()
  }

  @Test @MainActor func `reloads whose callers have all left begin no further download`()
    async throws
  {
    let gate = Gate()
    let transport = blocking(gate)
    let loader = loader(connections: 9, transport)
    let url = try url("a")
    let (first, second) = try await loader.beginTwoReloads(of: url, firstAt: gate)
    for task in [second, first] { task.cancel() }
    for task in [second, first] {
      await #expect(throws: CancellationError.self) { try await task.value }
    }
    gate.open()
    await loader.idle()
    #expect(transport.names == ["a"])
    _ = try await loader.request(url)
    await loader.idle()
  }

  @Test func `what waits for its turn while the loader is cleared is not even begun`() async throws
  {
    let gate = Gate()
    let transport = blocking(gate)
    let loader = loader(connections: 1, transport)
    let blocker = Task { try await loader.request(url("blocker")) }
    await gate.arrivals(1)
    let second = Task { try await loader.request(url("a")) }
    await loader.waiting(1)
    try await loader.clear()
    gate.open()
    await #expect(throws: MediaError.cleared) { try await blocker.value }
    await #expect(throws: MediaError.cleared) { try await second.value }
    #expect(transport.names == ["blocker"])
    #expect(folder.files.isEmpty)
  }

  @Test func `waits between attempts may be of any length`() async throws {
    let clock = ManualClock()
    let long = Duration.seconds(1 << 40)
    let cap = Duration.seconds(Int64.max)
    let retry = RetryPolicy.exponential(attempts: 40, base: long, cap: cap, jitter: 0)
    let transport = ClosureTransport { count, request, receiver in
      guard count == 33 else { throw URLError(.timedOut) }
      try receiver.take(request, "abc")
    }
    let loader = loader(connections: 1, retry: retry, clock: clock, transport)
    let request = Task { try await loader.request(url("a")) }
    for number in 0..<32 {
      await clock.sleepers(1)
      let wait = number < 23 ? Duration.seconds(1 << (40 + number)) : cap
      #expect(clock.nextDeadline == clock.now.advanced(by: wait))
      clock.advance(by: wait)
    }
    _ = try await request.value
  }

  @Test(.guarantee(.priorityDeterminesThePlace))
  func `the priority of a request decides its place in the line`() async throws {
    let gate = Gate()
    let transport = blocking(gate)
    let loader = loader(connections: 1, transport)
    var requests = try ["first", "low", "high"].map { MediaRequest(try url($0)) }
    requests[1].priority = .low
    requests[2].priority = .high
    let first = Task { [requests] in try await loader.request(requests[0]) }
    await gate.arrivals(1)
    let others = requests[1...].map { request in Task { try await loader.request(request) } }
    await loader.waiting(2)
    gate.open()
    _ = try await first.value
    for task in others { _ = try await task.value }
    #expect(transport.names == ["first", "high", "low"])
  }

  @Test func `a relative URL and an absolute one share a download and a file`() async throws {
    let gate = Gate()
    let transport = blocking(gate)
    let loader = loader(connections: 9, transport)
    let base = try #require(URL(string: "http://nowhere.invalid/folder/"))
    let relative = try #require(URL(string: "a.bin", relativeTo: base))
    let absolute = try url("folder/a.bin")
    let request = Task { try await loader.request(relative) }
    await gate.arrivals(1)
    // Both ask for the same, which has one place in the line.
    #expect(loader.core.gate.urgency(of: absolute.absoluteString) != nil)
    let another = Task { try await loader.request(absolute) }
    gate.open()
    #expect(try await request.value == another.value)
    #expect(loader.cachedFile(for: relative) == loader.cachedFile(for: absolute))
    #expect(transport.names.count == 1)
  }

  @Test func `a transfer is as urgent as the most urgent of its callers`() async throws {
    let told = Guarded<[TaskPriority]>([])
    let gate = Gate()
    let transport = ClosureTransport { _, request, receiver in
      receiver.onPriorityChange { priority in told.withLock { $0.append(priority) } }
      try await gate.wait()
      try receiver.take(request, "abc")
    }
    let loader = loader(connections: 1, transport)
    let url = try url("a")
    // The gate reports a moment later, on the thread that has changed it.
    func isTold(_ priority: TaskPriority) async {
      while told.withLock({ $0.last }) != priority { await Task.detached {}.value }
    }
    loader.prefetch([url])
    await gate.arrivals(1)
    let low = Task(priority: .background) { try await loader.request(url) }
    await isTold(.background)
    let high = Task(priority: .high) { try await loader.request(url) }
    await isTold(.high)
    let another = Task(priority: .high) { try await loader.request(url) }
    let medium = Task(priority: .medium) { try await loader.request(url) }
    another.cancel()
    _ = await another.result
    high.cancel()
    _ = await high.result
    await isTold(.medium)
    gate.open()
    _ = try await (low.value, medium.value)
    await loader.idle()
    #expect(told.withLock { $0.prefix(3) } == [.utility, .background, .high])
    #expect(told.withLock { $0.last } != .high)
  }

  /// A receiver that keeps what changes the priority.
  private struct Receiver: HTTPReceiver {
    let change: Guarded<(@Sendable (TaskPriority) -> Void)?>

    func onPriorityChange(_ change: @escaping @Sendable (TaskPriority) -> Void) {
      self.change.withLock { $0 = change }
    }

    func begin(_ response: HTTPURLResponse) throws {}
    func receive(_ bytes: Data) throws {}
  }

  @Test func `the tasks of a session get the priority of their callers`() async throws {
    let change = Guarded<(@Sendable (TaskPriority) -> Void)?>(nil)
    let transport = URLSessionTransport(timeout: 600)
    let origin = try LoopbackOrigin()
    origin.inject(.stall(), for: "/")
    let request = URLRequest(url: try #require(URL(string: origin.address + "/")))
    let sending = Task(priority: .low) {
      try await transport.send(request, to: Receiver(change: change))
    }
    // The session knows only tasks that have been resumed.
    await origin.requests(1, for: "/")
    let tasks = await withCheckedContinuation { continuation in
      transport.session.getAllTasks { continuation.resume(returning: $0) }
    }
    let task = try #require(tasks.first)
    #expect(task.priority == URLSessionTask.lowPriority)
    let call = try #require(change.withLock { $0 })
    for (priority, expected) in [
      (TaskPriority.high, URLSessionTask.highPriority), (.medium, URLSessionTask.defaultPriority),
      (.utility, URLSessionTask.lowPriority), (.background, URLSessionTask.lowPriority),
    ] {
      call(priority)
      #expect(task.priority == expected)
    }
    sending.cancel()
    await #expect(throws: CancellationError.self) { try await sending.value }
  }

  /// The calls that take a request.
  enum Call: CaseIterable {
    case withFile, digest, reload, image, revalidation
  }

  @Test(.guarantee(.priorityDeterminesThePlace), arguments: Call.allCases)
  func `the priority of a request counts in every call`(call: Call) async throws {
    let gate = Gate()
    let transport = blocking(gate)
    let loader = MediaLoader(
      directory: folder.url,
      transport: transport,
      rules: .patient,
      connectionsPerHost: 1,
      revalidates: call == .revalidation,
      retry: .never
    )
    let images = ImageLoader(media: loader) { $0.count }
    var low = MediaRequest(try url("low"))
    var high = MediaRequest(try url("high"))
    (low.priority, high.priority) = (.low, .high)
    let first = Task { try await loader.request(url("first")) }
    await gate.arrivals(1)
    var tasks: [Task<Void, Never>] = []
    for (count, request) in [low, high].enumerated() {
      tasks.append(
        Task {
          switch call {
          case .withFile: try? await loader.withFile(for: request) { _ in }
          case .digest: _ = try? await loader.request(request, sha256: "")
          case .reload: _ = try? await loader.reload(request)
          case .image: _ = try? await images.request(request)
          case .revalidation: _ = try? await loader.request(request)
          }
        }
      )
      await loader.waiting(count + 1)
    }
    gate.open()
    _ = try await first.value
    for task in tasks { await task.value }
    #expect(transport.names == ["first", "high", "low"])
    await loader.idle()
  }
}
