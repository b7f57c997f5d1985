import Plexus

/// A persistent event that carries an object.
struct Load: PersistentEvent {
  let parcel: Parcel
  var rule: PersistenceRule?

  init(_ parcel: Parcel, _ rule: PersistenceRule? = nil) {
    self.parcel = parcel
    self.rule = rule
  }

  var persistenceRule: PersistenceRule { rule ?? .clearImmediately }

  var persistence: EventPersistence {
    if let rule { .persistent(rule) } else { .none }
  }
}
