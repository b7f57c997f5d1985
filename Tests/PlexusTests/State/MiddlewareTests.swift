import Plexus
import PlexusTesting
import TestSupport
import Testing

@Suite(.fewAtOnce) struct `Middleware in a store` {
  typealias Step = Middleware<[Int], Int>

  func makeStore(_ middleware: Step...) -> Store<[Int], Int> {
    Store([], middleware: middleware) { $0.append($1) }
  }

  @Test(.guarantee(.middlewareIsCalledInOrder))
  func `middleware is called in the order of the array, each around the following ones`() {
    let log = Log<String>()
    func named(_ name: String) -> Step {
      Step { action, _, next in
        log.append("\(name) before")
        next(action)
        log.append("\(name) after")
      }
    }
    let store = Store<[Int], Int>([], middleware: [named("a"), named("b"), named("c")]) { _, _ in
      log.append("reducer")
    }
    store.dispatch(1)
    #expect(
      log.entries == [
        "a before", "b before", "c before", "reducer", "c after", "b after", "a after",
      ]
    )
  }

  @Test(.guarantee(.middlewareIsCalledInOrder)) func `middleware may drop an action`() async {
    let store = makeStore(Step { action, _, next in if action != 2 { next(action) } })
    let states = store.subscription(bufferingPolicy: .unbounded)
    for action in 1...3 { store.dispatch(action) }
    #expect(store.state == [1, 3])
    #expect(await states.first(3) == [[], [1], [1, 3]])
  }

  @Test(.guarantee(.middlewareIsCalledInOrder))
  func `middleware may replace an action, for those behind it only`() {
    let seen = Log<Int>()
    let store = makeStore(
      Step { action, _, next in
        seen.append(action)
        next(action * 10)
      },
      Step { action, _, next in
        seen.append(action)
        next(action)
      }
    )
    store.dispatch(7)
    #expect(seen.entries == [7, 70])
    #expect(store.state == [70])
  }

  @Test(.guarantee(.middlewareIsCalledInOrder))
  func `middleware can add actions, each published by itself`()
    async
  {
    let store = makeStore(
      Step { action, _, next in
        next(action)
        next(action + 1)
      }
    )
    let states = store.subscription(bufferingPolicy: .unbounded)
    store.dispatch(1)
    #expect(await states.first(3) == [[], [1], [1, 2]])
  }

  @Test(.guarantee(.middlewareIsCalledInOrder)) func `middleware may delay an action`() async {
    let clock = ManualClock()
    let store = makeStore(
      Step { action, context, next in
        guard action == 1 else { return next(action) }
        context.run {
          try? await clock.sleep(for: .seconds(1))
          context.dispatch(100)
        }
      }
    )
    let changes = store.subscription(toChangesOf: { $0 })
    store.dispatch(1)
    store.dispatch(2)
    await clock.sleepers(1)
    #expect(store.state == [2])
    clock.advance(by: .seconds(1))
    #expect(await changes.first(3).map(\.new) == [[], [2], [2, 100]])
  }

  @Test func `middleware sees the state before next, and the new state after it`() {
    let seen = Log<[Int]>()
    let store = makeStore(
      Step { action, context, next in
        seen.append(context.state)
        next(action)
        seen.append(context.state)
        next(action + 1)
        seen.append(context.state)
      }
    )
    store.dispatch(1)
    #expect(seen.entries == [[], [1], [1, 2]])
  }

  @Test func `middleware lets an action that it dispatches pass all middleware`() {
    let seen = Log<String>()
    let store = makeStore(
      Step { action, _, next in
        seen.append("first \(action)")
        next(action)
      },
      Step { action, context, next in
        seen.append("second \(action)")
        if action == 1 { context.dispatch(2) }
        next(action)
      }
    )
    store.dispatch(1)
    #expect(seen.entries == ["first 1", "second 1", "first 2", "second 2"])
    #expect(store.state == [1, 2])
  }

  /// An action that can be a function, like a thunk.
  enum Thunk: Sendable {
    case add(Int)
    case work(@Sendable (Middleware<Int, Thunk>.Context) -> Void)
  }

  @Test func `middleware makes thunks of actions that are functions`() async {
    let thunks = Middleware<Int, Thunk> { action, context, next in
      if case .work(let work) = action { work(context) } else { next(action) }
    }
    let store = Store<Int, Thunk>(0, middleware: [thunks]) { state, action in
      if case .add(let number) = action { state += number }
    }
    store.dispatch(.work { context in context.dispatch(.add(context.state + 1)) })
    #expect(store.state == 1)
    await store.dispatchAndWait(
      .work { context in
        context.run { context.dispatch(.add(context.state + 10)) }
      }
    )
    #expect(store.state == 12)
  }

  @Test func `middleware logs actions with the states around them`() {
    let lines = Log<String>()
    let logger = Step { action, context, next in
      let before = context.state
      next(action)
      lines.append("\(action): \(before) -> \(context.state)")
    }
    let store = makeStore(logger)
    store.dispatch(4)
    store.dispatch(5)
    #expect(lines.entries == ["4: [] -> [4]", "5: [4] -> [4, 5]"])
  }

  @Test func `middleware is not called for an action while another thread processes one`() {
    let log = Log<String>()
    let later = Later<Store<[Int], Int>>()
    let store = makeStore(
      Step { action, _, next in
        log.append("begin \(action)")
        if action == 1 { onOwnThread { later.value?.dispatch(2) } }
        next(action)
        log.append("end \(action)")
      }
    )
    later.value = store
    store.dispatch(1)
    #expect(log.entries == ["begin 1", "end 1", "begin 2", "end 2"])
  }
}
