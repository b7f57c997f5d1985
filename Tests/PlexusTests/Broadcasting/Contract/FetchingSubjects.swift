import Plexus
import TestSupport

/// Pages of one parcel each; sending fetches a new first page, one after the other.
struct PagedPublisherSubject: ContractSubject {
  private let parcels = ParcelFeed()

  var testDescription: String { "a paged publisher" }

  var replays: Bool { true }

  var deliversAtOnce: Bool { false }

  func makeSource() -> PagedPublisher<Parcel, Int> {
    let source = PagedPublisher<Parcel, Int> { [parcels] _ in
      Page(items: await parcels.next().map { [$0] } ?? [], next: nil)
    }
    Task { [parcels, weak source] in
      while await parcels.isFilled(), let source {
        try await source.loadFirstPage()
      }
      parcels.release()
    }
    return source
  }

  func send(_ parcel: Parcel, to source: PagedPublisher<Parcel, Int>) { parcels.send(parcel) }

  func parcel(in element: LoadState<Pages<Parcel>>) -> Parcel? {
    if case .loading = element { nil } else { element.value?.items.first }
  }

  func end(_ source: PagedPublisher<Parcel, Int>) { parcels.close(after: source) }

  func fresh() -> Self { PagedPublisherSubject() }
}

/// A sequence of parcels, iterated once for all subscribers.
struct SharedSequenceSubject: ContractSubject {
  private let parcels = ParcelFeed()

  var testDescription: String { "a shared sequence" }

  var deliversAtOnce: Bool { false }

  var losesInPauses: Bool { true }

  func makeSource() -> SharedSequence<Parcel> { parcels.broadcast() }

  func send(_ parcel: Parcel, to source: SharedSequence<Parcel>) { parcels.send(parcel) }

  func parcel(in element: Parcel) -> Parcel? { element }

  func end(_ source: SharedSequence<Parcel>) { parcels.close(after: source) }

  func fresh() -> Self { SharedSequenceSubject() }
}

/// Parcels in order, kept for the next fetch.
private final class ParcelFeed: AsyncSequence, Sendable {
  final class Iterator: AsyncIteratorProtocol {
    private let feed: ParcelFeed

    init(_ feed: ParcelFeed) {
      self.feed = feed
    }

    deinit {
      feed.release()
    }

    func next() async -> Parcel? { await feed.next() }
  }

  private struct State {
    var parcels: [Parcel] = []
    var isClosed = false
    var waiting: [Int: CheckedContinuation<Void, Never>] = [:]
    var lastID = 0
    /// The broadcaster, which must not be released before all parcels have been requested.
    var kept: (any Sendable)?
  }

  private let state = Guarded(State())

  func makeAsyncIterator() -> Iterator { Iterator(self) }

  func send(_ parcel: Parcel) {
    change { $0.parcels.append(parcel) }
  }

  /// Ends the sequence after the parcels sent so far, and keeps its broadcaster until then.
  func close(after source: some Broadcaster) {
    let isAwaited = source.subscriberCount > 0
    change { state in
      state.isClosed = true
      if isAwaited { state.kept = source }
    }
  }

  /// Releases the broadcaster after all parcels have been requested.
  func release() {
    let kept = state.withLock { $0.kept.take() }
    withExtendedLifetime(kept) {}
  }

  /// Returns the next parcel, or `nil` at the end and when the task is cancelled.
  func next() async -> Parcel? {
    guard await isFilled() else { return nil }
    return state.withLock { $0.parcels.isEmpty ? nil : $0.parcels.removeFirst() }
  }

  /// Waits for the next parcel; returns `false` at the end and when the task is cancelled.
  func isFilled() async -> Bool {
    let id = state.withLock { state in
      state.lastID += 1
      return state.lastID
    }
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let isWaiting = state.withLock { state in
          guard state.parcels.isEmpty, !state.isClosed, !Task.isCancelled else { return false }
          state.waiting[id] = continuation
          return true
        }
        if !isWaiting { continuation.resume() }
      }
    } onCancel: {
      state.withLock { $0.waiting.removeValue(forKey: id) }?.resume()
    }
    return !Task.isCancelled && state.withLock { !$0.parcels.isEmpty }
  }

  private func change(_ body: (inout State) -> Void) {
    let waiting = state.withLock { state in
      body(&state)
      defer { state.waiting = [:] }
      return state.waiting
    }
    for continuation in waiting.values { continuation.resume() }
  }
}
