import Plexus

/// States of a store; sending dispatches.
struct StoreSubject: ContractSubject {
  var testDescription: String { "a store" }

  var replays: Bool { true }

  func makeSource() -> Store<Parcel?, Parcel> { Store(nil) { $0 = $1 } }

  func send(_ parcel: Parcel, to source: Store<Parcel?, Parcel>) { source.dispatch(parcel) }

  func parcel(in element: Parcel?) -> Parcel? { element }
}

/// States of a page with the states of its app; sending dispatches to the page, or to the app.
struct PageStoreSubject: ContractSubject {
  let sendsToApp: Bool

  var testDescription: String {
    sendsToApp ? "a page store whose app changes" : "a page store"
  }

  var replays: Bool { true }

  func makeSource() -> PageStore<Parcel?, Parcel, Parcel?, Parcel> {
    let app = Store<Parcel?, Parcel>(nil) { $0 = $1 }
    return app.page({ _ in Parcel?.none }, reducer: { $0 = $1 })
  }

  func send(_ parcel: Parcel, to source: PageStore<Parcel?, Parcel, Parcel?, Parcel>) {
    if sendsToApp { source.parent.dispatch(parcel) } else { source.dispatch(parcel) }
  }

  func parcel(in element: (app: Parcel?, page: Parcel?)) -> Parcel? {
    sendsToApp ? element.app : element.page
  }
}
