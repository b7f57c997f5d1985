import Plexus
import PlexusTesting
import TestSupport
import Testing

/// Fetches that wait for events, and handlers that wait for fetches.
@Suite(.fewAtOnce) struct `A fetch that waits for a post` {
  @Test(
    .guarantee(.ownKeyRequestsThrow),
    arguments: [nil, PersistenceRule.clearImmediately, .neverClear]
  )
  func `a fetch that waits for a post makes a handler that requests the same key fail`(
    rule: PersistenceRule?
  ) async throws {
    let (bus, own, errors) = (EventBus(), OwnCache<Multiplexer<Int>>(), Log<MultiplexerError>())
    let token = bus.observe(Notice.self) { _ async throws -> Void in
      do {
        _ = try await own.first()?.request()
      } catch {
        if let error = error as? MultiplexerError { errors.append(error) }
        throw error
      }
    }
    let cache = Multiplexer<Int>(id: "own") {
      let outcome = await bus.postAndWait(Notice(1, rule))
      return 10 * outcome.notified + outcome.handled
    }
    own.send(cache)
    #expect(try await cache.request() == 10)
    #expect(errors.entries == [.recursiveRequest(chain: ["own", "own"])])
    withExtendedLifetime(token) {}
  }

  @Test(.guarantee(.ownKeyRequestsThrow))
  func `a handler fails that requests the key of a fetch waiting for it through another fetch`()
    async throws
  {
    let (bus, own, errors) = (EventBus(), OwnCache<Multiplexer<Int>>(), Log<MultiplexerError>())
    let between = MultiplexerMap<Int, Int>(id: "m") { key in
      try await own.first()?.request() ?? key
    }
    let token = bus.observe(Notice.self) { _ async throws -> Void in
      do {
        _ = try await between.request(1)
      } catch {
        if let error = error as? MultiplexerError { errors.append(error) }
      }
    }
    let cache = Multiplexer<Int>(id: "own") { await bus.postAndWait(Notice(1)).handled }
    own.send(cache)
    #expect(try await cache.request() == 1)
    #expect(errors.entries == [.recursiveRequest(chain: ["m[1]", "own", "m[1]"])])
    withExtendedLifetime(token) {}
  }

  @Test(.guarantee(.ownKeyRequestsThrow))
  func `a fetch that waits for a post does not make a handler that is done with the event fail`()
    async throws
  {
    let (bus, own, log) = (EventBus(), OwnCache<Multiplexer<Int>>(), Log<Int?>())
    let (gate, first) = (Gate(), Gate())
    let quick = bus.observe(Notice.self) { notice async throws -> Void in
      if notice.number == 1 { return first.open() }
      log.append(try await own.first()?.request())
    }
    let slow = bus.observe(Notice.self) { notice async throws -> Void in
      if notice.number == 1 { try await gate.wait() }
    }
    let cache = Multiplexer<Int> { await bus.postAndWait(Notice(1)).handled }
    own.send(cache)
    let request = begin { try await cache.request() }
    await gate.arrivals(1)
    try await first.wait()
    // The fetch waits for the slow handler only, so the quick one can wait for the fetch.
    bus.post(Notice(2))
    while cache.statistics.joins == 0 { await Task.detached {}.value }
    gate.open()
    #expect(try await request.value == 2)
    #expect(await log.first(1) == [2])
    withExtendedLifetime((quick, slow)) {}
  }

  @Test(.guarantee(.ownKeyRequestsThrow))
  func `a fetch that waits for a post does not make a handler that was registered later fail`()
    async throws
  {
    let (bus, own, log) = (EventBus(), OwnCache<Multiplexer<Int>>(), Log<Int?>())
    let (gate, started) = (Gate(), Gate())
    let slow = bus.observe(Notice.self) { notice async throws -> Void in
      if notice.number == 1 { try await gate.wait() }
    }
    let cache = Multiplexer<Int> { await bus.postAndWait(Notice(1)).handled }
    own.send(cache)
    let request = begin { try await cache.request() }
    await gate.arrivals(1)
    let late = bus.observe(Notice.self) { notice async throws -> Void in
      started.open()
      log.append(try await own.first()?.request())
    }
    bus.post(Notice(2))
    try await started.wait()
    gate.open()
    #expect(try await request.value == 1)
    #expect(await log.first(1) == [1])
    withExtendedLifetime((slow, late)) {}
  }
}
