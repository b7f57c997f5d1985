internal import Plexus

/// A store.
final class StoreSource<State: Sendable, Action: Sendable>: InspectedSource {
  private weak let store: Store<State, Action>?
  private let disclosure: Disclosure
  private let actions = Journal<ActionRecord<State, Action>>(
    capacity: 100,
    number: { $0.number }
  )

  /// The time that the differences of one page take, and the parts of each that are shown with the action.
  private static var patience: Duration { .milliseconds(5) }
  private static var shownChanges: Int { 3 }

  init(_ store: Store<State, Action>, _ disclosure: Disclosure) {
    self.store = store
    self.disclosure = disclosure
  }

  var kind: SourceKind { .store }

  func start(_ pace: Pace) {
    if let store { actions.read(store.actions(), pace: pace) }
  }

  func stop() {
    actions.stop()
  }

  var numbers: JSON? {
    guard let store else { return nil }
    let counts = actions.counts
    return [
      "actions": .int(counts.all), "recent": .int(counts.recent),
      "subscribers": .int(store.subscriberCount),
    ]
  }

  func details(since revision: Int) -> (JSON, revision: Int) {
    let changes = actions.changes(since: revision, limit: 100)
    let end = ContinuousClock.now + Self.patience
    // The newest ones first: a page can request the others.
    let items = changes.items.reversed().map { item -> JSON in
      let hasTime = ContinuousClock.now < end
      return json(item, hasTime ? difference(of: item.record) : nil)
    }
    let details: JSON = [
      "actions": .array(items.reversed()),
      "stateType": .string("\(State.self)".shortened(to: 100)),
    ]
    return (details, changes.revision)
  }

  func difference(ofAction number: Int) -> JSON? {
    guard let record = actions.record(number) else { return nil }
    let difference = self.difference(of: record)
    return [
      "number": .int(number),
      "action": .string(disclosure.name(of: record.action, limit: 2_000)),
      "changes": .array(difference.lines.map(Self.json)),
      "isCut": .bool(difference.isCut),
    ]
  }

  private func difference(of record: ActionRecord<State, Action>) -> StateDifference {
    StateDifference(record.before, record.after, disclosure)
  }

  private func json(
    _ item: JournalState<ActionRecord<State, Action>>.Item,
    _ difference: StateDifference?
  ) -> JSON {
    [
      "number": .int(item.number),
      "time": item.time.map(JSON.decimal) ?? .null,
      "action": .string(disclosure.name(of: item.record.action)),
      "changeCount": difference.map { .int($0.lines.count) } ?? .null,
      "isCut": .bool(difference?.isCut == true),
      "changes": difference.map { difference in
        .array(difference.lines.prefix(Self.shownChanges).map(Self.json))
      } ?? .null,
    ]
  }

  private static func json(_ line: StateDifference.Line) -> JSON {
    ["path": .string(line.path), "before": .text(line.before), "after": .text(line.after)]
  }
}
