// A store and its pages change under one lock, that of the store's cell. A combination subscribes to the state of the app
// and to those of its pages, so that all parts of a family are made from the same state of the app.

extension Store: JointPart {
  nonisolated func place(in draft: inout JointPlan.Draft) -> Int {
    draft.place(StoreRoot(cell: cell), id: ObjectIdentifier(cell)).step
  }
}

extension PageStore: JointPart {
  nonisolated func place(in draft: inout JointPlan.Draft) -> Int {
    draft.add(ObjectIdentifier(cell)) { draft in
      let app = draft.place(
        StoreRoot(cell: parent.cell),
        id: ObjectIdentifier(parent.cell),
        isSource: false
      )
      let page = draft.place(PageRoot(page: self), id: ObjectIdentifier(cell), family: app.root)
      return [app.step, page.step]
    } _: { inputs -> Element in
      var inputs = inputs
      let app: AppState = inputs.next()
      return (app: app, page: inputs.next())
    }
  }
}

/// The states of a store, as a root of a combination.
private struct StoreRoot<State: Sendable>: JointRoot {
  let cell: StoreCell<State>

  func follow(_ joint: Joint, as index: Int) -> Handler {
    let recipe = Handler.Recipe(isolation: nil, .direct(JointFollower(joint, root: index)))
    let added = cell.withState { state in
      let added = cell.hub.add(recipe)
      joint.begin(index, with: Box(state))
      return added
    }
    return cell.hub.start(added)
  }

  func read(_ body: (AnyBox) -> Void) {
    cell.withState { body(Box($0)) }
  }
}

/// The states of a page, without those of the app, as a root of a combination.
private struct PageRoot<
  AppState: Sendable,
  AppAction: Sendable,
  PageState: Sendable,
  PageAction: Sendable
>: JointRoot {
  let page: PageStore<AppState, AppAction, PageState, PageAction>

  func follow(_ joint: Joint, as index: Int) -> Handler {
    let follower = JointFollower(joint, root: index) { item in
      // In the same critical section, the combination gets the new state of the app from the store.
      guard item.sender != PageCell<AppState, PageState>.appMark else { return nil }
      let snapshot = Box<(app: AppState, page: PageState)>.element(of: item.box)
      return Box(snapshot.page)
    }
    let recipe = Handler.Recipe(isolation: nil, .direct(follower))
    let (hub, added) = page.withHub { hub, replay in
      let added = hub.add(recipe)
      if let snapshot = replay.last { joint.begin(index, with: Box(snapshot.page)) }
      return (hub, added)
    }
    return hub.start(added)
  }

  func read(_ body: (AnyBox) -> Void) {
    body(Box(page.state))
  }
}
