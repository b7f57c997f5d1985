import Plexus
import TestSupport

/// A persistent event with a configurable persistence.
struct Notice: PersistentEvent, Hashable {
  let number: Int
  /// The rule, or `nil` for an event that is not retained.
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

/// An event that is not retained.
struct Ping: Event, Hashable {
  let number: Int

  init(_ number: Int) {
    self.number = number
  }
}

extension PersistenceRule {
  static var allCases: [PersistenceRule] {
    [.clearImmediately, .clearAfterAllCurrentSubscribersNotified, .neverClear]
  }
}

extension EventBus {
  /// Posts an existential of type `any Event`.
  nonisolated func postGenerically<E: Event>(_ event: E, scope: EventScope?) async -> PostOutcome {
    await postAndWait(event, scope: scope)
  }

  /// Waits until all earlier posts have been handled.
  nonisolated func settle(scope: EventScope? = nil) async {
    await postAndWait(Notice(-1), scope: scope)
  }

  /// Returns the numbers of the retained notices.
  nonisolated func pendingNumbers(scope: EventScope? = nil) -> [Int] {
    pendingEvents(of: Notice.self, scope: scope).map(\.number)
  }
}

/// The kinds of handlers, for parameterized tests.
enum Way: CaseIterable, Sendable {
  case result
  case asyncResult
  case void
  case asyncVoid

  /// Registers a handler that logs the events that it receives, except markers of the end.
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
        if !succeeds { throw Broken() }
      }
    case .asyncVoid:
      return bus.observe(Notice.self, scope: scope) { notice async throws in
        await Task.detached {}.value
        note(notice)
        if !succeeds { throw Broken() }
      }
    }
  }
}
