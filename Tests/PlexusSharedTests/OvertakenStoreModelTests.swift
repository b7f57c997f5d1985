import Plexus
import PlexusSharedTesting
import PlexusTesting
import TestSupport
import Testing

/// Stores and updates of a process whose writes fail at times, while another process changes the same key.
@Suite(.fewAtOnce)
struct `Histories of writes that fail` {
  /// The value of the process, and its order among the changes of the other one.
  private struct Expectation {
    var step = 0
    /// The value in memory, if it is known.
    var value: String?
    /// The step of the last foreign change that the value takes into account.
    var base = 0
    /// Whether the order of the value and of a foreign change is not known to the process.
    var isUncertain = false
    var isUnwritten = false
    /// Whether another process can have changed the key since the value was stored, as far as the process knows.
    var isContested = false
    /// Whether the next change is announced to the process.
    var isInterested = true
    var lastForeign = 0
    /// The step after which the engine had the value of the process.
    var lastAnswer = 0

    /// The values that both processes can see once the value is written.
    func outcomes(origin: String) -> Set<String> {
      guard let value, lastForeign <= base else { return [origin] }
      return isUncertain ? [value, origin] : [value]
    }

    mutating func store(_ value: String) {
      self.value = value
      (base, isUncertain, isUnwritten) = (step, lastForeign > lastAnswer, true)
      isContested = false
    }

    mutating func changeElsewhere() {
      lastForeign = step
      // Without a flush, the value can replace it.
      if isUnwritten, !isInterested, !isContested { (base, isUncertain) = (step, true) }
      isContested = isContested || isInterested
      isInterested = false
    }

    mutating func failWrite() {
      isContested = isContested || isUnwritten
    }

    mutating func write() {
      isUnwritten = false
      guard lastForeign <= base, !isUncertain else { return }
      (base, lastAnswer) = (step, step)
      (isContested, isInterested) = (false, true)
    }

    mutating func see(_ value: String?) {
      self.value = value
      (base, isUncertain, isUnwritten) = (step, false, false)
      lastAnswer = step
      (isContested, isInterested) = (false, true)
    }
  }

  private let cacher: RefusingCacher
  private let node: SharedMemoryNode<String>
  private let map: MultiplexerMap<String, String>
  private let other: SharedNode
  private let origin = Origin()

  init() {
    let clock = ManualClock()
    let engine = SharedMemory<String>(clock: clock)
    node = engine.node()
    cacher = RefusingCacher(node, refusing: "values/k")
    let origin = origin
    var policy = CachePolicy()
    policy.timeToLive = .seconds(600)
    policy.storageTimeout = .seconds(5_000_000_000)
    map = MultiplexerMap(id: "values", policy: policy, cacher: cacher, clock: clock) {
      try origin.value($0)
    }
    other = SharedNode(engine, clock: clock, policy: policy, fetch: origin.value)
  }

  /// Returns what the other process sees, and then the process itself.
  private func look(_ expectation: inout Expectation) async throws -> [String] {
    try await map.flush()
    let seen = [try await other.map.request("k"), try await map.request("k")]
    expectation.see(seen[1])
    return seen
  }

  /// Makes a change by one of the two processes.
  private func step(_ number: Int, _ expectation: inout Expectation) async throws {
    switch number {
    case 0..<3:
      map.store("s\(expectation.step)", for: "k")
      expectation.store("s\(expectation.step)")
      await send(&expectation)
    case 3..<8:
      let old = map.cachedValue("k")
      guard let new = map.update("k", { $0 += "+" }) else { return }
      // A value that was given up can still be in memory.
      #expect(old == expectation.value)
      (expectation.value, expectation.isUnwritten) = (new, true)
      await send(&expectation)
    case 8..<10:
      node.cutOff()
      expectation.failWrite()
    case 10..<13:
      // It sends the changes.
      if !node.isConnected { node.reconnect() }
      await send(&expectation)
    case 13..<15:
      cacher.isRefusing.toggle()
    case 15:
      cacher.losesReplies.toggle()
    case 16..<19:
      expectation.changeElsewhere()
      origin.set("o\(expectation.step)")
      if number == 16 { return try await other.map.clear("k") }
      other.map.store("o\(expectation.step)", for: "k")
      try await other.map.flush()
    default:
      _ = try await other.map.request("k")
    }
  }

  /// Waits until a change is sent, which begins at once: otherwise, its order among the others would be random.
  private func send(_ expectation: inout Expectation) async {
    do {
      try await map.flush()
      if expectation.isUnwritten { expectation.write() }
    } catch {
      // The engine has executed the store.
      if expectation.isUnwritten, node.isConnected, !cacher.isRefusing {
        expectation.isInterested = true
      }
      expectation.failWrite()
    }
  }

  @Test(.guarantee(.storedValuesDoNotReplaceLaterChanges), arguments: 0..<40 as Range<UInt64>)
  func `failed writes lose nothing that no other process has changed, nor replace later changes`(
    seed: UInt64
  ) async throws {
    for part in 0..<25 as Range<UInt64> {
      let world = Self()
      var numbers = SeededRandom(seed: seed &* 25 &+ part)
      var expectation = Expectation()
      // The engine has an entry to compare with.
      expectation.see(try await world.map.request("k"))
      var history: [Int] = []
      for _ in 0..<12 {
        expectation.step += 1
        history.append(.random(in: 0..<20, using: &numbers))
        try await world.step(history[history.count - 1], &expectation)
      }
      (world.cacher.isRefusing, world.cacher.losesReplies) = (false, false)
      if !world.node.isConnected { world.node.reconnect() }
      expectation.step += 1
      let possible = expectation.outcomes(origin: try world.origin.value("k"))
      let seen = try await world.look(&expectation)
      #expect(possible.contains(seen[0]), "\(part): \(history), \(possible)")
      #expect(seen[0] == seen[1], "\(part): \(history)")
    }
  }
}
