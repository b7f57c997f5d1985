import Plexus
import PlexusTesting
import TestSupport
import Testing

/// Random histories, compared with a model of a store: a list of actions in one order.
@Suite(.fewAtOnce) struct `A store under stress` {
  /// An action of one of several threads, which can cause further actions.
  struct Move: Sendable, Hashable {
    enum Source: Sendable, Hashable { case thread, reducer, middleware, effect }

    var thread: Int
    var number: Int
    var source = Source.thread
  }

  struct History: Sendable, Equatable {
    var moves: [Move] = []
    var sum = 0
    /// A part that changes rarely.
    var tens: Int { sum / 10 }
  }

  /// The reducer as a model: a list and a sum.
  static func replay(_ moves: [Move]) -> History {
    moves.reduce(into: History()) { history, move in
      history.moves.append(move)
      history.sum += move.number % 7
    }
  }

  @Test(.guarantee(.storesAgreeWithASequentialModel), arguments: 0..<10)
  func `a store agrees with a sequential model, stress from many threads with nested actions`(
    seed: Int
  ) async {
    let later = Later<Store<History, Move>>()
    let isBusy = Guarded(false)
    let nesting = Middleware<History, Move> { move, context, next in
      isBusy.withLock { isBusy in
        #expect(!isBusy)
        isBusy = true
      }
      let before = context.state.moves.count
      if move.source == .thread, move.number % 5 == 1 {
        context.dispatch(Move(thread: move.thread, number: move.number, source: .middleware))
      }
      if move.source == .thread, move.number % 5 == 2 {
        context.run {
          context.dispatch(Move(thread: move.thread, number: move.number, source: .effect))
        }
      }
      next(move)
      #expect(context.state.moves.count == before + 1)
      isBusy.withLock { $0 = false }
    }
    let count = 100
    let expected = 4 * count + 3 * 4 * count / 5
    let final: History
    let states: Recorder<History>
    let tens: Recorder<Change<Int>>
    let sums: Recorder<Change<Int>>
    do {
      let store = Store<History, Move>(History(), middleware: [nesting]) { history, move in
        if move.source == .thread, move.number % 5 == 3 {
          later.value?.dispatch(Move(thread: move.thread, number: move.number, source: .reducer))
        }
        history.moves.append(move)
        history.sum += move.number % 7
      }
      later.value = store
      states = Recorder(store.subscription(bufferingPolicy: .unbounded))
      tens = Recorder(store.subscription(toChangesOf: \.tens))
      sums = Recorder(store.subscription(toChangesOf: { $0.sum }))
      await withTaskGroup { group in
        for thread in 0..<4 {
          group.addTask {
            var random = SeededRandom(seed: UInt64(seed * 10 + thread + 1))
            for number in 0..<count {
              let move = Move(thread: thread, number: number)
              if Bool.random(using: &random) {
                store.dispatch(move)
              } else {
                await store.dispatchAndWait(move)
                #expect(store.state.moves.contains(move))
              }
            }
          }
        }
      }
      // Effects of actions that were not waited for can still be running.
      _ = await states.first(expected + 1)
      final = store.state
    }

    #expect(final == Self.replay(final.moves))
    #expect(Set(final.moves).count == final.moves.count)
    #expect(final.moves.count == expected)
    for thread in 0..<4 {
      let own = final.moves.filter { $0.thread == thread && $0.source == .thread }
      #expect(own.map(\.number) == Array(0..<count))
    }
    let places = Dictionary(uniqueKeysWithValues: final.moves.enumerated().map { ($1, $0) })
    for (move, place) in places where move.source != .thread {
      let cause = Move(thread: move.thread, number: move.number)
      #expect((places[cause] ?? .max) < place)
    }
    let seen = await states.finished()
    #expect(seen.map(\.moves.count) == Array(0...expected))
    #expect(seen.last == final)
    checkChain(await tens.finished(), of: (0...expected).map { seen[$0].tens })
    checkChain(await sums.finished(), of: (0...expected).map { seen[$0].sum })
  }

  /// Checks that changes are the values without the repetitions.
  func checkChain(_ changes: [Change<Int>], of values: [Int]) {
    var expected: [Change<Int>] = []
    for value in values where value != expected.last?.new {
      expected.append(Change(old: expected.last?.new, new: value))
    }
    #expect(changes == expected)
  }

  @Test(arguments: 0..<5)
  func `a store loses no page, stream or selector, stress from many threads`(seed: Int) async {
    let census = Census()
    let store = Store<Shelf, ShelfAction>(Shelf(), reducer: arrange)
    await withTaskGroup { group in
      for thread in 0..<4 {
        group.addTask {
          var random = SeededRandom(seed: UInt64(seed * 10 + thread + 1))
          for _ in 0..<100 {
            let parcel = census.parcel(1)
            switch Int.random(in: 0..<5, using: &random) {
            case 0:
              let page = store.page({ $0.count }, reducer: { $0 += $1 * parcel.number })
              page.dispatch(1)
              let changes = page.subscription(toChangesOfApp: { $0.count * parcel.number })
              store.dispatch(.add(1))
              #expect(await changes.first(1).count == 1)
            case 1:
              let changes = store.subscription(toChangesOf: { $0.count * parcel.number })
              store.dispatch(.add(1))
              #expect(await changes.first(1).count == 1)
            case 2:
              let token = store.observe { _ in withExtendedLifetime(parcel) {} }
              store.dispatch(.add(1))
              token.cancel()
            case 3:
              let consumer = StateConsumer<Shelf>()
              consumer.add({ $0.count * parcel.number }) { _, _ in }
              consumer.follow(store)
              store.dispatch(.add(1))
            default:
              _ = store.subscription(toChangesOf: \.name)
              store.dispatch(.add(1))
            }
          }
        }
      }
    }
    // A task can still have to process the actions that the callers have enqueued.
    await store.dispatchAndWait(.nothing)
    await census.falls(to: 0)
    #expect(store.state.count == 400)
    #expect(store.subscriberCount == 0)
    #expect(census.living == 0)
  }
}
