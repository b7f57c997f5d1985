import Plexus
import PlexusTesting
import TestSupport
import Testing

/// Every type can be handed to another task; what cannot does not compile here.
@Suite(.fewAtOnce) struct `The types of the library` {
  private func requireSendable<Value: Sendable>(_ type: Value.Type) {}

  @Test(.guarantee(.publicTypesAreSendable)) func `the types of broadcasting are sendable`() {
    requireSendable(Messenger<Int>.self)
    requireSendable(Author.self)
    requireSendable(DataPublisher<Int>.self)
    requireSendable(LoadState<Int>.self)
    requireSendable(LoadError.self)
    requireSendable(PagedPublisher<Int, Int>.self)
    requireSendable(PagedMap<Int, Int, Int>.self)
    requireSendable(Page<Int, Int>.self)
    requireSendable(Pages<Int>.self)
    requireSendable(SharedSequence<Int>.self)
    requireSendable(Subscription<Int>.self)
    requireSendable(ObservationToken.self)
    requireSendable(ObservationBag.self)
    requireSendable(SubscriberSnapshot.self)
    requireSendable((any Broadcaster<Int>).self)
    requireSendable((any DataManager<Int>).self)
  }

  @Test(.guarantee(.publicTypesAreSendable))
  func `the types of events and of snapshots are sendable`() {
    requireSendable(EventBus.self)
    requireSendable(EventPost.self)
    requireSendable(EventBus.ChannelSnapshot.self)
    requireSendable(ActionRecord<Int, Int>.self)
    requireSendable(MultiplexerMap<Int, Int>.EntrySnapshot.self)
    requireSendable(MultiplexerMap<Int, Int>.FlightSnapshot.self)
    requireSendable(Multiplexer<Int>.EntrySnapshot.self)
    requireSendable(Multiplexer<Int>.FlightSnapshot.self)
    requireSendable(CacheEntryState.self)
    requireSendable((any Event).self)
    requireSendable((any PersistentEvent).self)
    requireSendable(EventPersistence.self)
    requireSendable(PersistenceRule.self)
    requireSendable(EventScope.self)
    requireSendable(HandlerResult.self)
    requireSendable(PostOutcome.self)
  }

  @Test(.guarantee(.publicTypesAreSendable)) func `the types of timing are sendable`() {
    requireSendable(Debouncer.self)
    requireSendable(DebouncerVar<Int>.self)
    requireSendable(Throttler.self)
    requireSendable(DebouncedSequence<Subscription<Int>>.self)
    requireSendable(ThrottledSequence<Subscription<Int>>.self)
  }

  @Test(.guarantee(.publicTypesAreSendable)) func `the types for tests are sendable`() {
    requireSendable(ManualClock.self)
    requireSendable(ManualClock.Instant.self)
    requireSendable(Recorder<Int>.self)
    requireSendable(Gate.self)
    requireSendable(ScriptedFetcher<Int>.self)
    requireSendable(InterleavingFailure.self)
  }
}
