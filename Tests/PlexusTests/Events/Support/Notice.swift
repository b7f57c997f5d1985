import Plexus
import TestSupport

/// A persistent event of the tests, which says itself how it is kept.
struct Notice: PersistentEvent, Hashable {
  let number: Int
  /// `nil` is not kept at all.
  var rule: PersistenceRule?
  var limit: Int?
  var timeToLive: Duration?

  init(
    _ number: Int,
    _ rule: PersistenceRule? = nil,
    limit: Int? = nil,
    timeToLive: Duration? = nil
  ) {
    self.number = number
    self.rule = rule
    self.limit = limit
    self.timeToLive = timeToLive
  }

  var persistenceRule: PersistenceRule { rule ?? .clearImmediately }

  var persistence: EventPersistence {
    guard let rule else { return .none }
    return .persistent(rule, limit: limit, timeToLive: timeToLive)
  }
}

/// An event of the tests that is not kept.
struct Ping: Event, Hashable {
  let number: Int

  init(_ number: Int) {
    self.number = number
  }
}

/// A reason for a handler to fail.
struct Refusal: Error {}

extension PersistenceRule {
  static var allCases: [PersistenceRule] {
    [.clearImmediately, .clearAfterAllCurrentSubscribersNotified, .neverClear]
  }
}

extension EventBus {
  /// Posts from code that knows no more than that it is an event.
  nonisolated func postGenerically<E: Event>(_ event: E, scope: EventScope?) async -> PostOutcome {
    await postAndWait(event, scope: scope)
  }

  /// Waits until everything posted so far has been handled.
  nonisolated func settle(scope: EventScope? = nil) async {
    await postAndWait(Notice(-1), scope: scope)
  }

  /// The numbers of the kept notices.
  nonisolated func pendingNumbers(scope: EventScope? = nil) -> [Int] {
    pendingEvents(of: Notice.self, scope: scope).map(\.number)
  }
}

/// How a handler is made and what it does, in the tests that try them all.
enum Way: CaseIterable, Sendable {
  case result
  case asyncResult
  case void
  case asyncVoid

  /// Registers a handler that logs what it gets, other than what only marks the end.
  func observe(
    _ bus: EventBus,
    _ name: String,
    into log: Log<String>,
    scope: EventScope? = nil,
    succeeds: Bool
  ) -> ObservationToken {
    let note: @Sendable (Notice) -> Void = { notice in
      if notice.number >= 0 { log.append("\(name)\(notice.number)") }
    }
    switch self {
    case .result:
      return bus.observe(Notice.self, scope: scope) { notice in
        note(notice)
        return succeeds ? .handledSuccessfully : .failed
      }
    case .asyncResult:
      return bus.observe(Notice.self, scope: scope) { notice async in
        await Task.detached {}.value
        note(notice)
        return succeeds ? .handledSuccessfully : .failed
      }
    case .void:
      return bus.observe(Notice.self, scope: scope) { notice in
        note(notice)
        if !succeeds { throw Refusal() }
      }
    case .asyncVoid:
      return bus.observe(Notice.self, scope: scope) { notice async throws in
        await Task.detached {}.value
        note(notice)
        if !succeeds { throw Refusal() }
      }
    }
  }
}
