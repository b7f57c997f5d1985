extension EventChannel {
  /// The offers of a channel: its subscribers, its retained events and the next step.
  ///
  /// Posts and replays are processed one after the other. An event that is not retained goes to all subscribers in
  /// one step. A retained event is offered to one subscriber at a time, and the next step waits for the result of
  /// the offer.
  ///
  /// Invariants:
  ///
  /// - At most one offer is open.
  /// - A subscriber is offered an event at most once: live if it was registered when the event was posted,
  ///   in a replay if it was registered later. Its replay is queued after all posts before its registration and
  ///   before all posts after it.
  /// - An event is retained from its post until a success under a clearing rule, a limit, its deadline or a
  ///   request removes it.
  /// - All removed elements go through ``released``, so that they are released without a lock.
  struct OffersState<Element: Sendable, Member: Sendable>: Sendable {
    /// An event for one subscriber.
    struct Offer: Sendable {
      let number: Int
      let element: Element
      let member: Member
    }

    /// The next step.
    enum Step: Sendable {
      /// Deliver an event to one subscriber and report the result with ``finish(_:as:revocableAt:)``.
      case offer(Offer)
      /// Deliver an event to every subscriber that had not passed the post when it was added.
      case fanOut(Element, post: Int)
      /// End the post with that number.
      case end(post: Int, PostOutcome)
    }

    private struct Place: Sendable {
      let id: Int
      var member: Member
      /// The events that were replayed to the subscriber, as far as their acceptance can be revoked.
      var replayed: ContiguousArray<Replayed> = []
      /// The last post of the replay, and the number of the next event that is not retained at its end.
      var replayEnd = (post: 0, sequence: 0)
    }

    private struct Replayed: Sendable {
      let post: Int
      /// The former retention of the event, if its acceptance has ended it.
      let cleared: RetainedEventsState<Element>.Cleared?
    }

    private enum Job: Sendable {
      case fanOut(Element, post: Int)
      case queued(QueuedPost)
      /// Replays retained events up to the last post to one subscriber; `done` is its latest post.
      case replay(receiver: Int, last: Int, done: Int)
    }

    private struct QueuedPost: Sendable {
      let element: Element
      let post: Int
      let rule: PersistenceRule
      /// The last subscriber at the time of the post.
      let last: Int
      /// The subscriber that was offered the event last.
      var cursor = 0
      var notified = 0
      var handled = 0
    }

    private var places: ContiguousArray<Place> = []
    private var lastID = 0
    private var lastPost = 0
    private var lastOffer = 0
    /// The events retained for later subscribers.
    private(set) var retained = RetainedEventsState<Element>()
    private var jobs = Ring<Job>()
    /// The number of replays that have not begun.
    private var replayCount = 0
    private var current: Job?
    private var openOffer: (number: Int, receiver: Int, isStarted: Bool)?
    /// The removed elements, to be released without a lock.
    private(set) var released: ContiguousArray<Element> = []

    /// Whether no post or replay is running or waiting.
    var isIdle: Bool { current == nil && jobs.isEmpty }

    /// Whether the channel can be dropped without a loss.
    var isEmpty: Bool { places.isEmpty && retained.count == 0 && isIdle }

    /// The number of waiting posts and replays.
    var waitingCount: Int { jobs.count }

    /// The number of subscribers.
    var memberCount: Int { places.count }

    /// Returns whether a subscriber is registered.
    func contains(_ id: Int) -> Bool {
      let index = firstPlace(from: id)
      return index < places.count && places[index].id == id
    }

    /// The place in subscription order of the next subscriber.
    var nextID: Int { lastID + 1 }

    /// The number of the last post that the next subscriber does not get although it is still to be delivered, or 0.
    var passed: Int { isIdle ? 0 : lastPost }

    /// Whether events are retained, which are replayed to the next subscriber.
    var isRetaining: Bool { retained.count > 0 }

    /// Adds a subscriber at the end; the retained events will be replayed to it.
    mutating func add(_ member: Member) {
      lastID += 1
      places.append(Place(id: lastID, member: member))
      guard retained.count > 0 else { return }
      jobs.append(.replay(receiver: lastID, last: lastPost, done: 0))
      replayCount += 1
    }

    /// Removes a subscriber.
    ///
    /// Its open offer is withdrawn if the subscriber has not begun to handle it, and otherwise counts as failed.
    ///
    /// - Parameters:
    ///   - id: The place of the subscriber.
    ///   - answers: Whether the subscriber still reports the result of an offer that it has begun to handle.
    /// - Returns: The subscriber, to be released without a lock, or `nil` if it was not registered.
    mutating func remove(_ id: Int, answers: Bool = false) -> Member? {
      let index = firstPlace(from: id)
      guard index < places.count, places[index].id == id else { return nil }
      if let offer = openOffer, offer.receiver == id, !(answers && offer.isStarted) {
        finish(offer.number, as: offer.isStarted ? .failed : .unreached)
      }
      let member = places.remove(at: index).member
      // During a slow handler, other subscribers can be added and removed many times.
      if replayCount > 2 * places.count + 32 { dropVainReplays() }
      return member
    }

    /// Removes the subscribers that satisfy a predicate.
    ///
    /// - Returns: The subscribers, to be released without a lock.
    mutating func remove(where isRemoved: (Member) -> Bool) -> [Member] {
      places.filter { isRemoved($0.member) }.compactMap { remove($0.id) }
    }

    /// Removes all subscribers of an idle channel.
    ///
    /// - Returns: The subscribers, to be released without a lock.
    mutating func removeMembers() -> [Member] {
      defer { places = [] }
      return places.map(\.member)
    }

    /// Enqueues an event, and retains it according to its persistence.
    ///
    /// - Parameters:
    ///   - element: The event.
    ///   - persistence: Its persistence.
    ///   - isAwaited: Whether a caller waits for the end of the post.
    ///   - now: The time.
    /// - Returns: The number of the post.
    mutating func post(
      _ element: Element,
      _ persistence: EventPersistence,
      isAwaited: Bool = true,
      at now: Nanoseconds
    ) -> Int {
      lastPost += 1
      guard let rule = persistence.rule else {
        jobs.append(.fanOut(element, post: lastPost))
        return lastPost
      }
      let deadline = persistence.timeToLive.map {
        now.addingSaturating(Nanoseconds(saturating: $0))
      }
      if deadline ?? .max > now {
        retained.append(element, of: lastPost, rule: rule, deadline: deadline)
      }
      dropExpired(at: now)
      if let limit = persistence.limit { retained.limit(to: limit, into: &released) }
      // Without subscribers, nothing is to be delivered.
      if !isAwaited, places.isEmpty, isIdle, retained.contains(post: lastPost, at: now) {
        return lastPost
      }
      let queued = QueuedPost(element: element, post: lastPost, rule: rule, last: lastID)
      if isIdle { current = .queued(queued) } else { jobs.append(.queued(queued)) }
      return lastPost
    }

    /// Returns the next step, or `nil` if an offer is open or nothing is queued.
    mutating func next(at now: Nanoseconds) -> Step? {
      guard openOffer == nil else { return nil }
      while let job = current ?? jobs.popFirst() {
        current = nil
        switch job {
        case .fanOut(let element, let post):
          released.append(element)
          return .fanOut(element, post: post)
        case .queued(let queued):
          return step(of: queued, at: now)
        case .replay(let receiver, let last, let done):
          if done == 0 { replayCount -= 1 }
          if let step = replay(to: receiver, after: done, upTo: last, at: now) { return step }
        }
      }
      return nil
    }

    /// Marks an offer as being handled.
    ///
    /// - Returns: Whether the offer is still valid.
    mutating func start(_ offer: Int) -> Bool {
      guard openOffer?.number == offer else { return false }
      openOffer?.isStarted = true
      return true
    }

    /// Returns the number of the open offer that a subscriber has begun to handle, if there is one.
    func startedOffer(of id: Int) -> Int? {
      openOffer.flatMap { $0.receiver == id && $0.isStarted ? $0.number : nil }
    }

    /// Returns whether the result of an offer is awaited.
    func isOpen(_ offer: Int) -> Bool {
      openOffer?.number == offer
    }

    /// Ends an offer; ignores one that was withdrawn.
    ///
    /// - Parameters:
    ///   - offer: The number of the offer.
    ///   - ending: The result.
    ///   - sequence: The number of the next event that is not retained, if the subscriber is a stream: until there is one,
    ///     ``revoke(_:_:at:)`` can revoke the acceptance of a replayed event.
    mutating func finish(_ offer: Int, as ending: Handler.Ending, revocableAt sequence: Int? = nil)
    {
      guard openOffer?.number == offer else { return }
      openOffer = nil
      switch current {
      case .queued(var queued):
        if ending != .unreached { queued.notified += 1 }
        if ending == .succeeded {
          forgetReplay(to: queued.cursor)
          queued.handled += 1
          if queued.rule == .clearImmediately { retained.clear(post: queued.post, into: &released) }
        }
        current = .queued(queued)
      case .replay(let receiver, let last, let post):
        let cleared = ending == .succeeded ? retained.clear(post: post, into: &released) : nil
        let place = firstPlace(from: receiver)
        guard let sequence, place < places.count, places[place].id == receiver else { break }
        places[place].replayEnd = (last, sequence)
        if ending == .succeeded {
          places[place].replayed.append(Replayed(post: post, cleared: cleared))
        }
      case .fanOut, nil:
        break
      }
    }

    /// Replaces a subscriber by another one, which takes its place.
    ///
    /// - Returns: The former subscriber, to be released without a lock.
    mutating func replace(_ id: Int, with member: Member) -> Member? {
      let index = firstPlace(from: id)
      guard index < places.count, places[index].id == id else { return nil }
      defer { places[index].member = member }
      return places[index].member
    }

    /// Revokes that a subscriber has accepted the retained events: they are retained again, and replayed once more.
    ///
    /// - Parameters:
    ///   - id: The place of the subscriber.
    ///   - unread: The events that the subscriber has accepted and not read.
    ///   - sequence: The number of the next event that is not retained.
    /// - Returns: Whether these are all replayed ones, and no others. If not, nothing changes.
    mutating func revoke(_ id: Int, _ unread: [Element], at sequence: Int) -> Bool {
      let index = firstPlace(from: id)
      guard index < places.count, places[index].id == id, !unread.isEmpty,
        places[index].replayEnd.sequence == sequence,
        places[index].replayed.count == unread.count
      else { return false }
      for (replayed, element) in zip(places[index].replayed, unread) {
        if let cleared = replayed.cleared { retained.restore(element, as: cleared) }
      }
      places[index].replayed = []
      if case .replay(id, let last, _) = current {
        current = .replay(receiver: id, last: last, done: 0)
      } else {
        jobs.append(.replay(receiver: id, last: places[index].replayEnd.post, done: 0))
      }
      replayCount += 1
      return true
    }

    /// Lets no acceptance of a stream be revoked that has received another event.
    private mutating func forgetReplay(to id: Int) {
      let index = firstPlace(from: id)
      if index < places.count, places[index].id == id { places[index].replayed = [] }
    }

    /// Returns whether the event of a post is retained.
    func isKept(post: Int, at now: Nanoseconds) -> Bool {
      retained.contains(post: post, at: now)
    }

    /// Returns the progress of the post of a persistent event.
    func progress(of post: Int, at now: Nanoseconds) -> PostOutcome {
      var (notified, handled) = (0, 0)
      if case .queued(let queued) = current, queued.post == post {
        (notified, handled) = (queued.notified, queued.handled)
      }
      return PostOutcome(
        notified: notified,
        handled: handled,
        isPersisted: isKept(post: post, at: now)
      )
    }

    /// Returns the retained events in posting order.
    mutating func pending(at now: Nanoseconds) -> [Element] {
      dropExpired(at: now)
      return retained.elements
    }

    /// Discards the retained events.
    mutating func removePending() {
      retained.removeAll(into: &released)
    }

    /// Discards expired events.
    mutating func dropExpired(at now: Nanoseconds) {
      retained.dropExpired(at: now, into: &released)
    }

    /// Returns the removed elements, to be released without a lock.
    mutating func takeReleased() -> ContiguousArray<Element> {
      guard !released.isEmpty else { return [] }
      defer { released = [] }
      return released
    }

    private mutating func step(of queued: QueuedPost, at now: Nanoseconds) -> Step {
      let isDone = queued.rule == .clearImmediately && queued.handled > 0
      let index = firstPlace(from: queued.cursor + 1)
      if !isDone, index < places.count, places[index].id <= queued.last {
        var queued = queued
        queued.cursor = places[index].id
        current = .queued(queued)
        return offer(queued.element, to: places[index])
      }
      if queued.handled > 0 { retained.clear(post: queued.post, into: &released) }
      let isPersisted = isKept(post: queued.post, at: now)
      if !isPersisted { released.append(queued.element) }
      return .end(
        post: queued.post,
        PostOutcome(
          notified: queued.notified,
          handled: queued.handled,
          isPersisted: isPersisted
        )
      )
    }

    private mutating func replay(
      to receiver: Int,
      after done: Int,
      upTo last: Int,
      at now: Nanoseconds
    ) -> Step? {
      let place = firstPlace(from: receiver)
      guard place < places.count, places[place].id == receiver else { return nil }
      guard let (post, element) = retained.first(after: done, upTo: last, at: now) else {
        return nil
      }
      current = .replay(receiver: receiver, last: last, done: post)
      return offer(element, to: places[place])
    }

    /// Removes the replays for subscribers that have been removed.
    private mutating func dropVainReplays() {
      for job in jobs.popFirst(atMost: jobs.count) {
        if case .replay(let receiver, _, _) = job {
          let place = firstPlace(from: receiver)
          guard place < places.count, places[place].id == receiver else {
            replayCount -= 1
            continue
          }
        }
        jobs.append(job)
      }
    }

    private mutating func offer(_ element: Element, to place: Place) -> Step {
      lastOffer += 1
      openOffer = (lastOffer, place.id, false)
      return .offer(Offer(number: lastOffer, element: element, member: place.member))
    }

    /// Returns the index of the first subscriber at or after a place.
    private func firstPlace(from id: Int) -> Int {
      places.firstSortedIndex { $0.id >= id }
    }
  }
}
