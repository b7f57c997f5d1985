import Plexus
import PlexusTesting
import TestSupport
import Testing

/// The states that handlers receive after everything was cleared.
@Suite(.fewAtOnce) struct `A handler after a sign-out` {
  static let policies = `After a sign-out`.policies

  @Test(.guarantee(.noStateFromBeforeAReset), arguments: ClearedState.allCases, policies)
  func `a handler of any state that can be cleared is given no state from before a sign-out`(
    state: ClearedState,
    policy: Policy
  ) async throws {
    let (source, host, log) = (state.make(), SteppedHost(), Log<Bool>())
    try await source.fill()
    let token = await source.observe(host, policy, log)
    try await source.fill()
    try await source.clear()
    await host.executor.step()
    #expect(log.count >= 1)
    #expect(!log.entries.contains(true))
    // What comes afterwards is given to it, unless its policy refuses it.
    if case .oldest = policy { return }
    try await source.fill()
    while log.entries.last != true, !Task.isCancelled { await host.executor.step() }
    withExtendedLifetime(token) {}
  }

  @Test(.guarantee(.noStateFromBeforeAReset), arguments: ClearedState.allCases, policies)
  func `a suspending handler of any state is given no state from before a sign-out`(
    state: ClearedState,
    policy: Policy
  ) async throws {
    let (source, gate, log) = (state.make(), Gate(), Log<Bool>())
    try await source.fill()
    let token = source.observeSuspending(gate, policy, log)
    await gate.arrivals(1)
    try await source.fill()
    try await source.clear()
    let count = log.count
    gate.open()
    await log.first(count + 1)
    #expect(!log.entries.dropFirst(count).contains(true))
    withExtendedLifetime(token) {}
  }
}

/// The states that can be cleared, and the calls that clear them.
enum ClearedState: CaseIterable {
  case publisher, pages, manager
  case multiplexer, multiplexerInRepository
  case key, keys, keysByCondition, keysByTag, keysByTagInRepository, map, mapInRepository
  case keyWithoutValue, mapWithoutValues

  /// A state, with its calls.
  struct Source: Sendable {
    let observe: @Sendable (SteppedHost, Policy, Log<Bool>) async -> ObservationToken
    let observeSuspending: @Sendable (Gate, Policy, Log<Bool>) -> ObservationToken
    /// Publishes several states with a value.
    let fill: @Sendable () async throws -> Void
    let clear: @Sendable () async throws -> Void

    init<States: Broadcaster, Value: Sendable>(
      _ states: States,
      fill: @escaping @Sendable () async throws -> Void,
      clear: @escaping @Sendable () async throws -> Void
    ) where States.Element == LoadState<Value> {
      observe = { host, policy, log in
        await host.observe(states, policy()) { log.append($0.value != nil) }
      }
      observeSuspending = { gate, policy, log in
        states.observe(bufferingPolicy: policy()) { (state: LoadState<Value>) async in
          log.append(state.value != nil)
          try? await gate.wait()
        }
      }
      self.fill = fill
      self.clear = clear
    }
  }

  func make() -> Source {
    let repository = MuxRepository()
    let multiplexer = Multiplexer<String> { "secret" }.register(in: repository)
    let map = MultiplexerMap<String, String>(tagging: { [CacheTag($0)] }) { _ in "secret" }
      .register(in: repository)
    let fillMultiplexer: @Sendable () -> Void = {
      for _ in 0..<20 { multiplexer.store("secret") }
    }
    let fillKey: @Sendable () -> Void = { for _ in 0..<20 { map.store("secret", for: "a") } }
    switch self {
    case .publisher:
      let publisher = DataPublisher<String>()
      return Source(publisher) {
        for _ in 0..<20 { publisher.update("secret") }
      } clear: {
        publisher.reset()
      }
    case .pages:
      let publisher = Catalog().publisher()
      return Source(publisher) {
        for _ in 0..<5 {
          try await publisher.loadFirstPage()
          try await publisher.loadNextPage()
        }
      } clear: {
        publisher.reset()
      }
    case .manager:
      let manager = Manager()
      return Source(manager.publisher) {
        for _ in 0..<10 { _ = try await manager.refresh() }
      } clear: {
        manager.logOut()
      }
    case .multiplexer:
      return Source(multiplexer, fill: fillMultiplexer) { try await multiplexer.clear() }
    case .multiplexerInRepository:
      return Source(multiplexer, fill: fillMultiplexer) { try await repository.clearAll() }
    case .key: return Source(map["a"], fill: fillKey) { try await map.clear("a") }
    case .keys: return Source(map["a"], fill: fillKey) { try await map.clear(["b", "a"]) }
    case .keysByCondition:
      return Source(map["a"], fill: fillKey) { try await map.clear(where: { $0 == "a" }) }
    case .keysByTag: return Source(map["a"], fill: fillKey) { try await map.clear(tags: ["a"]) }
    case .keysByTagInRepository:
      return Source(map["a"], fill: fillKey) { try await repository.clear(tags: ["a"]) }
    case .map: return Source(map["a"], fill: fillKey) { try await map.clear() }
    case .keyWithoutValue:
      return Source(map["a"], fill: fillKey) {
        map.clearMemory("a")
        try await map.clear("a")
      }
    case .mapWithoutValues:
      return Source(map["a"], fill: fillKey) {
        map.clearMemory()
        try await map.clear()
      }
    case .mapInRepository:
      return Source(map["a"], fill: fillKey) {
        try await repository.clearAll()
        withExtendedLifetime(map) {}
      }
    }
  }

  private struct Manager: DataManager {
    let publisher = DataPublisher<String>()
    func fetch() async throws -> String { "secret" }
  }
}
