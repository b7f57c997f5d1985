import Observation
import Plexus
import PlexusTesting
import TestSupport
import Testing

@Suite(.fewAtOnce, .timeLimit(.minutes(20))) @MainActor struct `An observed value` {
  /// Waits for the next change of a value.
  func nextChange<Value: Sendable>(of observed: ObservedValue<Value>) async -> Value {
    await withCheckedContinuation { continuation in
      withObservationTracking {
        _ = observed.value
      } onChange: {
        continuation.resume()
      }
    }
    // `onChange` is called before the value is set, on the main actor, which is ours again by now.
    return observed.value
  }

  @Test func `has the initial value, then that of the newest element`() async {
    let store = Store<Int, Int>(7) { $0 += $1 }
    let observed = ObservedValue(store, initial: 0)
    #expect(observed.value == 0)
    #expect(await nextChange(of: observed) == 7)
    store.dispatch(1)
    #expect(await nextChange(of: observed) == 8)
    #expect(store.subscriberCount == 1)
  }

  @Test func `follows any broadcaster`() async {
    let messenger = Messenger<String>()
    let observed = ObservedValue(messenger, initial: "")
    messenger.send("a")
    #expect(await nextChange(of: observed) == "a")
    let publisher = DataPublisher<Int>()
    let state = ObservedValue(publisher, initial: .unknown)
    publisher.update(3)
    while state.value.value == nil { _ = await nextChange(of: state) }
    #expect(state.value.value == 3)
  }

  /// Sends elements and returns what observers were told, in order.
  func told<Value: Sendable & Equatable>(_ values: [Value], initial: Value) async -> [Value] {
    let messenger = Messenger<Value>()
    let observed = ObservedValue(messenger, initial: initial)
    // Called after the observed value on the same actor: handlers are served in subscription order.
    let served = Log<Value>()
    let token = messenger.observe { [served] value in
      MainActor.assertIsolated()
      served.append(value)
    }
    var told: [Value] = []
    for (index, value) in values.enumerated() {
      let changes = Log<Void>()
      withObservationTracking {
        _ = observed.value
      } onChange: {
        changes.append(())
      }
      messenger.send(value)
      await served.first(index + 1)
      #expect(observed.value == value)
      if changes.count > 0 { told.append(observed.value) }
    }
    withExtendedLifetime(token) {}
    return told
  }

  @Test func `does not publish an equal value again`() async {
    #expect(await told([1, 1, 2, 2, 2, 1], initial: 1) == [2, 1])
    #expect(await told([[1], [1], [1, 2], []], initial: [1]) == [[1, 2], []])
  }

  @Test func `compares optional values as they should be`() async {
    let values: [Int?] = [nil, nil, 1, 1, nil, 2]
    #expect(await told(values, initial: nil) == [1, nil, 2])
  }

  struct Opaque: Sendable { var number: Int }

  @Test func `publishes every element of a type that cannot tell`() async {
    let messenger = Messenger<Opaque>()
    let observed = ObservedValue(messenger, initial: Opaque(number: 1))
    for _ in 0..<3 {
      messenger.send(Opaque(number: 1))
      #expect(await nextChange(of: observed).number == 1)
    }
  }

  @Test func `ends with its owner`() async {
    let store = Store<Int, Int>(0) { $0 += $1 }
    weak var weakObserved: ObservedValue<Int>?
    var observed: ObservedValue<Int>? = ObservedValue(store, initial: 0)
    weakObserved = observed
    #expect(store.subscriberCount == 1)
    withExtendedLifetime(observed) {}
    observed = nil
    #expect(weakObserved == nil)
    #expect(store.subscriberCount == 0)
  }

  @Test func `does not keep what it follows, and stays what it was last`() async {
    weak var weakStore: Store<Int, Int>?
    var store: Store<Int, Int>? = Store(5) { $0 += $1 }
    weakStore = store
    guard let source = store else { return }
    let observed = ObservedValue(source, initial: 0)
    _ = await nextChange(of: observed)
    _ = consume source
    store = nil
    #expect(weakStore == nil)
    #expect(observed.value == 5)
  }
}
