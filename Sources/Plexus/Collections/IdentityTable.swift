/// Values by the identity of a type or an object.
///
/// The entries are a sorted array: a look-up among a hundred takes a few comparisons and no hashing. An insertion
/// moves the entries behind it, so the table is meant for content that rarely changes.
struct IdentityTable<Value: Sendable>: Sendable {
  private struct Entry: Sendable {
    let key: UInt
    let value: Value
  }

  private var entries: ContiguousArray<Entry> = []

  /// The values.
  var values: [Value] { entries.map(\.value) }

  /// The value of an identity, of which `nil` is a distinct one.
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
      case nil where isKnown && index == entries.count - 1: entries.removeLast()
      case nil: if isKnown { entries.remove(at: index) }
      }
    }
  }

  private func place(of identity: ObjectIdentifier?) -> (key: UInt, index: Int) {
    let key = identity.map { UInt(bitPattern: $0) } ?? 0
    return (key, entries.firstSortedIndex { $0.key >= key })
  }
}
