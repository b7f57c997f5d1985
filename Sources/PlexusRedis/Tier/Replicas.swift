internal import PlexusSupport

/// The replicas that have to acknowledge removals, and the waits for them, which all spaces of an engine share.
///
/// A server waits only for what came over the same connection. So a wait begins with a token of each space, which is drawn
/// there once the server has executed the removals: a replica that has the token has the removals. A server that has lost
/// one of them begins a new epoch instead.
///
/// A caller joins the first wait that begins after its removal. Any number of removals at the same time need two waits: the
/// one in progress, and the next. No removal waits for either of them before it is executed.
final class Replicas: Sendable {
  /// The reasons why replicas may not have what some tiers know of.
  private typealias Failures = [ObjectIdentifier: any Error]

  /// The slot of a tier has got another master, for whose replicas another wait is in progress.
  ///
  /// They delay no removal at the former one.
  private struct Moved: Error {
    let outcome: Task<(any Error)?, Never>
  }

  /// The waits for the replicas of one master, one after the other.
  private struct Queue: Sendable {
    /// The wait that has begun last.
    var latest: Task<Failures, Never>?
    /// The wait that begins when that one ends.
    var next: Task<Failures, Never>?
    /// The tiers of the spaces that the next wait is for.
    var tiers: [Tier] = []
  }

  /// The connections of the waits: no other command waits behind them.
  private let router: Router
  private let count: Int
  /// The time for which the caller of a removal waits.
  let timeout: Duration
  /// The waits by the number of the connection that the spaces have to their master: replicas of one master that are behind
  /// delay no removal at another one.
  private let queues = Locked<[Int: Queue]>([:])

  /// - Parameters:
  ///   - count: The number of replicas.
  ///   - router: The connections of the waits.
  ///   - timeout: The time of a command.
  init(_ count: Int, over router: Router, within timeout: Duration) {
    (self.count, self.router, self.timeout) = (count, router, timeout)
  }

  /// Waits until the replicas have the removals that a tier knows of.
  ///
  /// - Parameters:
  ///   - tier: The tier.
  ///   - limit: The time after which, and after the cancellation of the calling task, the wait continues for the others only.
  /// - Throws: The reason why they may not have them.
  func acknowledge(_ tier: Tier, within limit: Duration? = nil) async throws {
    let end = limit.map { ContinuousClock.now + $0 }
    var failure = try await value(of: join(for: tier), until: end)[ObjectIdentifier(tier)]
    if let moved = failure as? Moved { failure = try await value(of: moved.outcome, until: end) }
    if let failure { throw failure }
  }

  private func value<Value: Sendable>(
    of wait: Task<Value, Never>,
    until end: ContinuousClock.Instant?
  ) async throws -> Value {
    let rest = end.map { max(.zero, ContinuousClock.now.duration(to: $0)) }
    guard let value = await wait.value(within: rest) else {
      try Task.checkCancellation()
      throw TierError.replicasBehind
    }
    return value
  }

  /// Returns the next wait, which begins at once if none is in progress.
  private func join(for tier: Tier) -> Task<Failures, Never> {
    let number = tier.route.master?.number ?? -1
    return queues.withLock { queues in
      var queue = queues[number] ?? Queue()
      defer { queues[number] = queue }
      if !queue.tiers.contains(where: { $0 === tier }) { queue.tiers.append(tier) }
      if let next = queue.next { return next }
      let task = Task.detached { [self, latest = queue.latest] in
        _ = await latest?.value
        defer { end(number) }
        return await wait(for: begin(number))
      }
      queue.next = task
      return task
    }
  }

  /// Begins the next wait of a queue: later callers join the one after it.
  ///
  /// - Returns: The tiers that it is for.
  private func begin(_ number: Int) -> [Tier] {
    queues.withLock { queues in
      let tiers = queues[number]?.tiers ?? []
      queues[number] = Queue(latest: queues[number]?.next)
      return tiers
    }
  }

  /// Removes a queue after its last wait.
  private func end(_ number: Int) {
    queues.withLock { queues in
      if queues[number]?.next == nil { queues[number] = nil }
    }
  }

  private func wait(for tiers: [Tier]) async -> Failures {
    var failures: Failures = [:]
    // Each master has its own replicas.
    var groups: [Int: (passage: Passage, tiers: [Tier])] = [:]
    await withTaskGroup { group in
      for tier in tiers {
        group.addTask { () -> (Tier, Result<Passage, any Error>) in
          do {
            return (tier, .success(try await self.route(of: tier).passage()))
          } catch {
            return (tier, .failure(error))
          }
        }
      }
      for await (tier, passage) in group {
        switch passage {
        case .success(let passage):
          groups[passage.master.number, default: (passage, [])].tiers.append(tier)
        case .failure(let error):
          failures[ObjectIdentifier(tier)] = error
        }
      }
    }
    await withTaskGroup { group in
      for (passage, tiers) in groups.values {
        group.addTask { await self.wait(for: tiers, at: passage) }
      }
      for await failed in group { failures.merge(failed) { $1 } }
    }
    return failures
  }

  private func route(of tier: Tier) -> Route {
    let route = Route(router, for: tier.names.epoch)
    route.begin(tier)
    return route
  }

  /// Waits for the replicas of one master.
  private func wait(for tiers: [Tier], at passage: Passage) async -> Failures {
    // All of them are sent over one connection or fail: on a later connection, there would be nothing to wait for.
    let replies = await passage.send(tiers.map(draw) + [command])
    var failures: Failures = [:]
    for (tier, reply) in zip(tiers, replies) {
      if case .failure(let error as RedisError) = reply, error.isRedirection {
        failures[ObjectIdentifier(tier)] = Moved(
          outcome: Task.detached { [self] in
            let others = await route(of: tier).send([draw(tier), command], repeatsAll: true)
            return failure(of: tier, others[0], others[1])
          }
        )
      } else {
        failures[ObjectIdentifier(tier)] = failure(of: tier, reply, replies[tiers.count])
      }
    }
    return failures
  }

  private func failure(
    of tier: Tier,
    _ reply: Result<RESPValue, any Error>,
    _ acknowledgement: Result<RESPValue, any Error>
  ) -> (any Error)? {
    do {
      _ = try tier.change(try reply.get())
      let acknowledged = try acknowledgement.get().integer ?? 0
      guard acknowledged >= count else {
        return TierError.notReplicated(acknowledged: Int(clamping: acknowledged), of: count)
      }
      return nil
    } catch {
      return error
    }
  }

  /// Draws a token in the space of a tier, which its master has to give its replicas.
  ///
  /// Every epoch is above zero: the script changes nothing else.
  private func draw(_ tier: Tier) -> RedisCommand {
    TierScripts.removeAll.command(tier.removalOfAll(unlessRaisedAbove: 0))
  }

  /// Waits until the replicas have the changes of the commands before it on the connection.
  private var command: RedisCommand {
    // The reply has to arrive in time, too. Zero would have no limit.
    let milliseconds = max(1, Nanoseconds(timeout) / 1_000_000 * 9 / 10)
    return RedisCommand("WAIT", [.number(Int64(count)), .number(milliseconds)])
  }
}

extension Tier: RouteOwner {
  func prepare(_ passage: Passage) async throws { try await checkRestart(at: passage) }
}
