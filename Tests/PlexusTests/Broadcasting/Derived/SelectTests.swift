import Plexus
import PlexusTesting
import TestSupport
import Testing

@Suite(.fewAtOnce) struct `A selected part` {
  struct Form: Sendable, Equatable {
    var text = ""
    var count = 0
  }

  enum FormAction: Sendable {
    case typed(String)
    case counted
  }

  private func makeStore() -> Store<Form, FormAction> {
    Store(Form()) { form, action in
      switch action {
      case .typed(let text): form.text = text
      case .counted: form.count += 1
      }
    }
  }

  @Test(.guarantee(.selectedPartsAreEvaluatedOnce))
  func `a selected part is published when it changes, and not when something else does`() async {
    var store: Store<Form, FormAction>? = makeStore()
    guard let text = store?.select(\.text).subscription(bufferingPolicy: .unbounded) else { return }
    for action in [FormAction.typed("h"), .counted, .typed("h"), .typed("hi")] {
      store?.dispatch(action)
    }
    store = nil
    #expect(await text.all() == ["", "h", "hi"])
  }

  @Test(.guarantee(.selectedPartsAreEvaluatedOnce))
  func `a selected part is evaluated once per action for a thousand subscribers`() async {
    let store = makeStore()
    let evaluations = Tally()
    let text = store.select { form in
      evaluations.increment()
      return form.text
    }
    let streams = (0..<1000).map { _ in text.subscribe() }
    let before = evaluations.value
    #expect(before == 1)
    for _ in 0..<10 { store.dispatch(.counted) }
    #expect(evaluations.value == before + 10)
    for _ in 0..<100 { #expect(text.current.isEmpty) }
    #expect(evaluations.value == before + 10, "reading it evaluates nothing")
    withExtendedLifetime(streams) {}
  }

  @Test(.guarantee(.selectedPartsAreEvaluatedOnce))
  func `a selected part is read from the state while it has no subscriber`() {
    let store = makeStore()
    let text = store.select(\.text)
    #expect(text.current.isEmpty)
    store.dispatch(.typed("h"))
    #expect(text.current == "h")
    let stream = text.subscribe()
    store.dispatch(.typed("hi"))
    #expect(text.current == "hi")
    withExtendedLifetime(stream) {}
  }

  @Test(.guarantee(.selectedPartsCanBeTemporaries))
  func `a selected part is released with the last subscriber, together with its memory`() {
    let store = Store<Parcel?, Parcel>(nil) { $0 = $1 }
    weak var parcel: Parcel?
    var stream: AsyncStream<[Parcel]>?
    do {
      let first = Parcel(1)
      parcel = first
      stream = store.map { $0.map { [$0] } ?? [] }.subscribe()
      store.dispatch(first)
    }
    store.dispatch(Parcel(2))
    #expect(parcel == nil)
    #expect(store.subscriberCount == 1)
    withExtendedLifetime(stream) {}
    stream = nil
    #expect(store.subscriberCount == 0)
  }

  @Test(.guarantee(.selectedPartsCanBeTemporaries))
  func `a selected part can be a temporary, and ends with its store`() async {
    var store: Store<Form, FormAction>? = makeStore()
    let stream = store?.select(\.count).subscribe()
    store?.dispatch(.counted)
    store = nil
    #expect(await stream?.all() == [1])
  }

  @Test(.guarantee(.selectedPartsCanBeTemporaries))
  func `a selected part of a page, a publisher or a part works alike`() async throws {
    let store = makeStore()
    let page = store.page({ _ in 0 }, reducer: { $0 += $1 })
    let sum = page.select { $0.app.count + $0.page }
    let publisher = DataPublisher<Form>()
    let text = publisher.select { $0.value?.text }
    let length = text.select { $0?.count ?? -1 }
    let sums = sum.subscription(bufferingPolicy: .unbounded)
    let lengths = length.subscription(bufferingPolicy: .unbounded)
    store.dispatch(.counted)
    page.dispatch(2)
    page.dispatch(0)
    publisher.update(Form(text: "abc"))
    publisher.update(Form(text: "xyz"))
    publisher.startLoading()
    publisher.update(Form(text: ""))
    #expect(await sums.first(3) == [0, 1, 3])
    #expect(await lengths.first(3) == [-1, 3, 0])
    #expect(sum.current == 3)
    #expect(length.current == 0)
  }

  @Test(.guarantee(.selectedPartsAreEvaluatedOnce))
  func `a part of a part is not behind the state while another thread evaluates that part`() {
    let value = CurrentValue(0)
    let whileEvaluating = Guarded<(@Sendable () -> Void)?>(nil)
    let first = value.select { number in
      whileEvaluating.withLock { $0.take() }?()
      return number
    }
    let second = first.select { $0 }
    let third = second.select { -$0 }
    let streams = (second.subscribe(), third.subscribe())
    let seen = Guarded<[Int]>([])
    whileEvaluating.withLock { action in
      action = {
        // The element 1 is being evaluated, and that of 2 has to wait for its turn.
        withoutLocks {
          value.value = 2
          let parts = [first.current, second.current, third.current]
          seen.withLock { $0 = parts }
        }
      }
    }
    value.value = 1
    #expect(seen.withLock { $0 } == [2, 2, -2])
    #expect([first.current, second.current, third.current] == [2, 2, -2])
    withExtendedLifetime(streams) {}
  }

  @Test(.guarantee(.selectedPartsAreEvaluatedOnce))
  func `a selected part is never behind the state for the thread that has changed it`() async {
    let value = CurrentValue(0)
    let part = value.select { $0 }
    let gate = Log<Void>()
    let slow = value.select { number -> Int in
      gate.append(())
      return number
    }
    let streams = (part.subscribe(), slow.subscribe())
    await withTaskGroup { group in
      for _ in 0..<4 {
        group.addTask {
          for _ in 0..<500 {
            let own = value.update { number in
              number += 1
              return number
            }
            #expect(part.current >= own)
          }
        }
      }
    }
    withExtendedLifetime(streams) {}
  }
}
