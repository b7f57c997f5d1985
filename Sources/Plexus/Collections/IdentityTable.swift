/// Values by the identity of a type or an object.
///
/// A sorted array: looking up one of a hundred takes a few comparisons and no hashing. Insertions move the entries
/// behind, so that the table is meant for what changes seldom.
struct IdentityTable<Value: Sendable>: Sendable {
  private struct Entry: Sendable {
    let key: UInt
    let value: Value
  }

  private var entries: ContiguousArray<Entry> = []

  /// The values.
  var values: [Value] { entries.map(\.value) }

  /// The value of an identity; `nil` is an identity of its own.
  subscript(identity: ObjectIdentifier?) -> Value? {
    get {
      let (key, index) = place(of: identity)
      return index < entries.count && entries[index].key == key ? entries[index].value : nil
    }
    set {
      let (key, index) = place(of: identity)
      let isKnown = index < entries.count && entries[index].key == key
      switch newValue {
      case .some(let value) where isKnown: entries[index] = Entry(key: key, value: value)
      case .some(let value): entries.insert(Entry(key: key, value: value), at: index)
      case nil: if isKnown { entries.remove(at: index) }
      }
    }
  }

  private func place(of identity: ObjectIdentifier?) -> (key: UInt, index: Int) {
    let key = identity.map { UInt(bitPattern: $0) } ?? 0
    return (key, entries.firstSortedIndex { $0.key >= key })
  }
}
