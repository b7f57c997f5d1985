extension Flight {
  /// The names of a cache and of its keys in errors and events.
  @usableFromInline
  final class Source: Sendable {
    private let id: String?
    private let type: any Any.Type
    private let namesKeys: Bool
    /// Whether a flight waits: for others with which it shares a fetch, or for its place.
    @usableFromInline let delaysFlights: Bool
    /// The limit for the fetches that run at the same time, if there is one.
    @usableFromInline let limit: FetchLimit?

    @usableFromInline
    init(
      id: String?,
      type: any Any.Type,
      namesKeys: Bool,
      delaysFlights: Bool = false,
      limit: FetchLimit? = nil
    ) {
      self.delaysFlights = delaysFlights || limit != nil
      self.limit = limit
      self.id = id
      self.type = type
      self.namesKeys = namesKeys
    }

    /// The id of the multiplexer, or the name of its type.
    ///
    /// The name of the type is created on demand, because that is slow.
    var name: String { id ?? "\(type)" }

    /// The name of a key in events.
    func name<Key>(of key: Key) -> String {
      namesKeys ? "\(key)" : name
    }

    /// The name of a key in error messages.
    func label<Key>(of key: Key) -> String {
      namesKeys ? "\(name)[\(key)]" : name
    }
  }
}
