import Foundation
import Plexus
import TestSupport
import Testing

/// Millions of deliveries without a gap, a repetition, a change of order or a leftover element.
///
/// `PLEXUS_EFFORT=100 swift test --filter DeliveryStress` makes a hundred million of them.
@Suite(.fewAtOnce, .serialized) struct `Delivery stress` {
  /// The numbers of the parcels that one consumer has received.
  final class Consumer: Sendable {
    struct Tally: Equatable, Sendable {
      var count = 0
      var gaps = 0
      var repetitions = 0
      var reorders = 0
    }

    private struct State {
      var tally = Tally()
      /// The next expected number of each sender.
      var expected = [0, 0]
    }

    private let state = Guarded(State())
    private let rounds: Log<Void>

    var tally: Tally { state.withLock { $0.tally } }

    init(rounds: Log<Void>) {
      self.rounds = rounds
    }

    func see(_ parcel: Parcel) {
      // A negative number ends a round.
      guard parcel.number >= 0 else { return rounds.append(()) }
      let (number, sender) = parcel.number.quotientAndRemainder(dividingBy: 2)
      state.withLock { state in
        let expected = state.expected[sender]
        state.tally.count += 1
        if number > expected { state.tally.gaps += 1 }
        if number == expected - 1 { state.tally.repetitions += 1 }
        if number < expected - 1 { state.tally.reorders += 1 }
        state.expected[sender] = number + 1
      }
    }
  }

  /// An actor that reads and has handlers.
  actor Host {
    func read(_ subscription: Subscription<Parcel>, _ consumer: Consumer) async {
      for await parcel in subscription { consumer.see(parcel) }
    }

    func observe(_ messenger: Messenger<Parcel>, _ consumer: Consumer) -> ObservationToken {
      messenger.observe { (parcel: Parcel) in
        self.assertIsolated()
        consumer.see(parcel)
      }
    }
  }

  @Test(.guarantee(.millionsOfDeliveriesLoseNothing))
  func `stress: of millions of deliveries none is lost, doubled, out of order or left behind`()
    async
  {
    let consumers = 10
    let each = 2_500
    let wanted = Effort.count(1_000_000)
    let rounds = max(1, wanted / (consumers * each * 2))
    let census = Census()
    let tallies = await run(census, rounds: rounds, each: each, consumers: consumers)
    let expected = Consumer.Tally(count: rounds * each * 2)
    #expect(tallies == Array(repeating: expected, count: consumers))
    await census.falls(to: 0)
    if Effort.isFull { print("\(tallies.reduce(0) { $0 + $1.count }) deliveries") }
  }

  /// Sends in rounds, so that memory does not grow, and returns the numbers that the consumers have received.
  private func run(
    _ census: Census,
    rounds: Int,
    each: Int,
    consumers count: Int
  ) async -> [Consumer.Tally] {
    let messenger = Messenger<Parcel>()
    let host = Host()
    let ends = Log<Void>()
    let consumers = (0..<count).map { _ in Consumer(rounds: ends) }
    let bag = ObservationBag()
    var loops: [Task<Void, Never>] = []
    for consumer in consumers[0..<4] {
      loops.append(
        Task { [subscription = messenger.subscription()] in
          for await parcel in subscription { consumer.see(parcel) }
        }
      )
    }
    loops.append(
      Task { [stream = messenger.subscribe(), consumer = consumers[4]] in
        for await parcel in stream { consumer.see(parcel) }
      }
    )
    loops.append(
      Task { @MainActor [subscription = messenger.subscription(), consumer = consumers[5]] in
        for await parcel in subscription { consumer.see(parcel) }
      }
    )
    loops.append(
      Task { [subscription = messenger.subscription(), consumer = consumers[6]] in
        await host.read(subscription, consumer)
      }
    )
    for consumer in consumers[7..<9] {
      await host.observe(messenger, consumer).store(in: bag)
    }
    messenger.observe { [consumer = consumers[9]] (parcel: Parcel) async in consumer.see(parcel) }
      .store(in: bag)
    for round in 0..<rounds {
      await withTaskGroup { group in
        for sender in 0..<2 {
          group.addTask {
            for number in round * each..<(round + 1) * each {
              messenger.send(census.parcel(number * 2 + sender))
            }
          }
        }
        // Others join and leave meanwhile.
        group.addTask {
          for limit in 0..<50 {
            let guest = messenger.subscription(bufferingPolicy: .bufferingNewest(limit))
            let token = messenger.observe(bufferingPolicy: .bufferingOldest(limit)) { _ in }
            await Task.detached {}.value
            withExtendedLifetime((guest, token)) {}
          }
        }
      }
      messenger.send(Parcel(-1))
      await ends.first((round + 1) * count)
    }
    messenger.finish()
    for loop in loops { await loop.value }
    bag.cancelAll()
    return consumers.map(\.tally)
  }
}
