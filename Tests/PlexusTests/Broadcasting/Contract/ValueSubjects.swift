import Plexus

/// A value; sending sets it.
struct CurrentValueSubject: ContractSubject {
  enum Ending: CaseIterable, Sendable { case finish, release }

  let removesDuplicates: Bool
  let ending: Ending

  var testDescription: String {
    "a current value\(removesDuplicates ? " without duplicates" : ""), ended by \(ending)"
  }

  var replays: Bool { true }

  func makeSource() -> CurrentValue<ChangesSubject.Content> {
    CurrentValue(ChangesSubject.Content(), removesDuplicates: removesDuplicates)
  }

  func send(_ parcel: Parcel, to source: CurrentValue<ChangesSubject.Content>) {
    source.value = ChangesSubject.Content(parcel: parcel)
  }

  func parcel(in element: ChangesSubject.Content) -> Parcel? { element.parcel }

  func end(_ source: CurrentValue<ChangesSubject.Content>) {
    if ending == .finish { source.finish() }
  }
}

/// A subject that is derived from another broadcaster.
struct DerivedSubject: ContractSubject {
  typealias Content = ChangesSubject.Content

  enum Kind: String, CaseIterable, Sendable {
    case mappedMessages = "mapped messages"
    case filteredMessages = "filtered messages"
    case messagesWithoutDuplicates = "messages without duplicates"
    case mappedValue = "a mapped value"
    case filteredValue = "a filtered value"
    case partOfStore = "a part of a store"
    case partOfValue = "a part of a value"
    case partOfPart = "a part of a part"
    case mappedForeign = "a mapped broadcaster of another library"
    case filteredMap = "filtered mapped messages"
    case combination = "a combination of values"
    case combinedParts = "a combination of parts of a store"
  }

  /// A derived broadcaster and its source.
  struct Source: Broadcaster {
    let base: any Broadcaster<Content>
    let send: @Sendable (Parcel) -> Void

    var subscriberCount: Int { base.subscriberCount }

    func subscription(bufferingPolicy: BufferingPolicy<Content>) -> Subscription<Content> {
      base.subscription(bufferingPolicy: bufferingPolicy)
    }

    func subscribe(bufferingPolicy: BufferingPolicy<Content>) -> AsyncStream<Content> {
      base.subscribe(bufferingPolicy: bufferingPolicy)
    }
  }

  let kind: Kind

  var testDescription: String { kind.rawValue }

  var replays: Bool {
    switch kind {
    case .mappedValue, .filteredValue, .partOfStore, .partOfValue, .partOfPart, .combination,
      .combinedParts:
      true
    default: false
    }
  }

  var keepsNewest: Bool { replays || kind == .messagesWithoutDuplicates }

  func makeSource() -> Source {
    let messenger = Messenger<Parcel>()
    switch kind {
    case .mappedMessages:
      return Source(base: messenger.map { Content(parcel: $0) }) { messenger.send($0) }
    case .filteredMessages:
      let contents = Messenger<Content>()
      return Source(base: contents.filter { $0.parcel != nil }) { parcel in
        contents.send(Content())
        contents.send(Content(parcel: parcel))
      }
    case .messagesWithoutDuplicates:
      let contents = Messenger<Content>()
      return Source(base: contents.removeDuplicates()) { contents.send(Content(parcel: $0)) }
    case .mappedValue:
      let value = CurrentValue<Parcel?>(nil)
      return Source(base: value.map { Content(parcel: $0) }) { value.value = $0 }
    case .filteredValue:
      let value = CurrentValue(Content())
      return Source(base: value.filter { $0.parcel != nil }) { value.value = Content(parcel: $0) }
    case .partOfStore:
      let store = Store<[Content], Parcel>([Content()]) { $0[0].parcel = $1 }
      return Source(base: store.select(\.[0])) { store.dispatch($0) }
    case .partOfValue:
      let value = CurrentValue(Parcel?.none)
      return Source(base: value.select { Content(parcel: $0) }) { value.value = $0 }
    case .partOfPart:
      let value = CurrentValue([Content()])
      return Source(base: value.select { $0 }.select(\.[0])) { value.value = [Content(parcel: $0)] }
    case .mappedForeign:
      let foreign = ForeignSubject.Source()
      return Source(base: foreign.map { Content(parcel: $0) }) { foreign.messenger.send($0) }
    case .filteredMap:
      let contents = messenger.map { Content(parcel: $0) }.filter { $0.parcel != nil }
      return Source(base: contents) { messenger.send($0) }
    case .combination:
      let (value, other) = (CurrentValue<Parcel?>(nil), CurrentValue(1))
      // It ends when all sources have ended.
      other.finish()
      return Source(base: combine(other, value) { Content(parcel: $1) }) { value.value = $0 }
    case .combinedParts:
      let store = Store<[Content], Parcel>([Content()]) { $0[0].parcel = $1 }
      let combination = combine(store.select(\.[0]), store.map(\.[0])) { part, _ in part }
      return Source(base: combination) { store.dispatch($0) }
    }
  }

  func send(_ parcel: Parcel, to source: Source) { source.send(parcel) }

  func parcel(in element: Content) -> Parcel? { element.parcel }
}
