import Plexus

/// States of one key of a map; sending stores a value for it.
struct MapKeySubject: ContractSubject {
  var testDescription: String { "a key of a multiplexer map" }

  var replays: Bool { true }

  func makeSource() -> MultiplexerMap<String, Parcel>.Entry {
    MultiplexerMap<String, Parcel> { _ in throw CancellationError() }["key"]
  }

  func send(_ parcel: Parcel, to source: MultiplexerMap<String, Parcel>.Entry) {
    source.store(parcel)
  }

  func parcel(in element: LoadState<Parcel>) -> Parcel? { element.value }
}

/// States of one value, as its live subscription receives them.
struct LiveSubject: ContractSubject {
  struct Source: Broadcaster {
    let cache: Multiplexer<Parcel?>

    var subscriberCount: Int { cache.subscriberCount }

    func subscription(
      bufferingPolicy: BufferingPolicy<LoadState<Parcel?>>
    ) -> Subscription<LoadState<Parcel?>> {
      cache.subscription(refetching: .whenStale, bufferingPolicy: bufferingPolicy)
    }
  }

  var testDescription: String { "a live subscription" }

  var replays: Bool { true }

  func makeSource() -> Source {
    let cache = Multiplexer<Parcel?> { throw CancellationError() }
    // It has a value that does not become stale, so that nothing is fetched.
    cache.store(nil)
    return Source(cache: cache)
  }

  func send(_ parcel: Parcel, to source: Source) { source.cache.store(parcel) }

  func parcel(in element: LoadState<Parcel?>) -> Parcel? { element.value ?? nil }
}

/// Changes of a part of a store's state, of a page's, or of the app's beside a page.
struct ChangesSubject: ContractSubject {
  enum Part: CaseIterable, Sendable {
    case store
    case page
    case app
  }

  /// A state with one parcel, or none initially.
  struct Content: Equatable, Sendable {
    var parcel: Parcel?

    static func == (left: Content, right: Content) -> Bool { left.parcel === right.parcel }
  }

  struct Source: Broadcaster {
    let part: Part
    let store: Store<Content, Parcel>?
    let page: PageStore<Content, Parcel, Content, Parcel>?

    init(_ part: Part) {
      let store = Store<Content, Parcel>(Content()) { $0.parcel = $1 }
      self.part = part
      self.store = part == .store ? store : nil
      page = part == .store ? nil : store.page({ _ in Content() }, reducer: { $0.parcel = $1 })
    }

    var subscriberCount: Int { store?.subscriberCount ?? page?.subscriberCount ?? 0 }

    func send(_ parcel: Parcel) {
      switch part {
      case .store: store?.dispatch(parcel)
      case .page: page?.dispatch(parcel)
      case .app: page?.parent.dispatch(parcel)
      }
    }

    func subscription(
      bufferingPolicy: BufferingPolicy<Change<Content>>
    ) -> Subscription<Change<Content>> {
      if let store {
        return store.subscription(toChangesOf: { $0 }, bufferingPolicy: bufferingPolicy)
      }
      guard let page else { preconditionFailure("There is a store or a page") }
      return part == .page
        ? page.subscription(toChangesOf: \.self, bufferingPolicy: bufferingPolicy)
        : page.subscription(toChangesOfApp: { $0 }, bufferingPolicy: bufferingPolicy)
    }

    func subscribe(
      bufferingPolicy: BufferingPolicy<Change<Content>>
    ) -> AsyncStream<Change<Content>> {
      if let store { return store.changes(of: \.self, bufferingPolicy: bufferingPolicy) }
      guard let page else { preconditionFailure("There is a store or a page") }
      return part == .page
        ? page.changes(of: { $0 }, bufferingPolicy: bufferingPolicy)
        : page.changes(ofApp: \.self, bufferingPolicy: bufferingPolicy)
    }
  }

  let part: Part

  var testDescription: String { "changes of a \(part)" }

  var replays: Bool { true }

  func makeSource() -> Source { Source(part) }

  func send(_ parcel: Parcel, to source: Source) { source.send(parcel) }

  func parcel(in element: Change<Content>) -> Parcel? { element.new.parcel }
}
