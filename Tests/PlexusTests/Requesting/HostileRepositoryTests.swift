import Dispatch
import Plexus
import PlexusTesting
import TestSupport
import Testing

@Suite(.fewAtOnce) struct `A repository of very many members` {
  let repository = MuxRepository()

  @Test func `a repository takes each of very many members in as fast as the first`() async throws {
    let members = (0..<50_000).map { number in Multiplexer { number } }
    for member in members { member.register(in: repository) }
    #expect(repository.count == 50_000)
    for member in members.prefix(10) { repository.unregister(member) }
    #expect(repository.count == 49_990)
    withExtendedLifetime(members) {}
  }

  @Test func `a repository keeps nothing that was derived from cleared values`() async throws {
    let old = (0..<32).map { _ in Multiplexer { 1 }.register(in: repository) }
    for member in old { member.store(1_000) }
    let sums = (0..<32).map { _ in
      Multiplexer { old.reduce(0) { $0 + ($1.cachedValue ?? 0) } }.register(in: repository)
    }
    // Some are between a member that is already detached and one that is not.
    let meddlers = (0..<8).map { _ in
      Meddler {
        let requests = DispatchGroup()
        for sum in sums {
          requests.enter()
          Task.detached {
            defer { requests.leave() }
            _ = try await sum.request()
          }
        }
        requests.wait()
      }
    }
    for meddler in meddlers { repository.register(meddler) }
    let clearing = Task(executorPreference: OwnThreadExecutor()) { [repository] in
      try await repository.clearAll()
    }
    try await clearing.value
    for sum in sums { #expect(try await sum.request() == 0) }
  }
}

/// A member that uses the others while all are detached.
private final class Meddler: RepositoryMember {
  private let meddle: @Sendable () -> Void

  init(_ meddle: @escaping @Sendable () -> Void) { self.meddle = meddle }

  func invalidate() {}

  func pause() { meddle() }

  func resume() {}

  func clearMemory() {}
}
