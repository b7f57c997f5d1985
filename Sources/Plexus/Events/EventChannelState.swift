/// The order of things in one channel: who is subscribed, which events are kept, and who gets what
/// next.
///
/// Posts and replays are done one after the other. An event that is not kept goes to everybody at once
/// when its turn comes. One that is kept is offered to one subscriber at a time, and the next step waits
/// for the result of the offer.
///
/// Invariants:
///
/// - At most one offer is open.
/// - A subscriber is offered an event at most once: live if it was there when the event was posted, in a
///   replay if it came later. Its replay stands behind all posts before its registration, and in front
///   of all posts after it.
/// - An event is kept from its post on. It leaves through a success under a clearing rule, a limit, its
///   deadline, or by request.
/// - Whatever leaves goes through ``released``, so that it can be freed without a lock.
struct EventChannelState<Element: Sendable, Member: Sendable>: Sendable {
  /// An event for one subscriber.
  struct Offer: Sendable {
    let number: Int
    let element: Element
    let member: Member
  }

  /// What has to be done next.
  enum Step: Sendable {
    /// Give an event to one subscriber, and tell the result with ``finish(_:as:)``.
    case offer(Offer)
    /// Give an event to every subscriber up to the given one; the first number is that of the post.
    case fanOut(Element, post: Int, last: Int)
    /// The post with that number has ended.
    case end(post: Int, PostOutcome)
  }

  private struct Place: Sendable {
    let id: Int
    let member: Member
  }

  private enum Job: Sendable {
    case fanOut(Element, post: Int, last: Int)
    case delivery(Delivery)
    /// Kept events up to the last post for one subscriber; `done` is the post that it had last.
    case replay(receiver: Int, last: Int, done: Int)
  }

  private struct Delivery: Sendable {
    let element: Element
    let post: Int
    let rule: PersistenceRule
    /// The last subscriber when the event was posted.
    let last: Int
    /// The subscriber that had the event last.
    var cursor = 0
    var notified = 0
    var handled = 0
  }

  private var places: ContiguousArray<Place> = []
  private var lastID = 0
  private var lastPost = 0
  private var lastOffer = 0
  /// What is kept for those who come later.
  private(set) var kept = KeptEventsState<Element>()
  private var jobs = Ring<Job>()
  /// How many of the jobs are replays.
  private var replayCount = 0
  private var current: Job?
  private var openOffer: (number: Int, receiver: Int, isStarted: Bool)?
  /// What has left, to be released without a lock.
  private(set) var released: ContiguousArray<Element> = []

  /// Whether nothing is under way, nor waits for it.
  var isIdle: Bool { current == nil && jobs.isEmpty }

  /// Whether nothing would be lost if the channel were forgotten.
  var isEmpty: Bool { places.isEmpty && kept.count == 0 && isIdle }

  /// The number of posts and replays that wait.
  var waitingCount: Int { jobs.count }

  /// The number of subscribers.
  var memberCount: Int { places.count }

  /// The subscribers in subscription order.
  var members: [Member] { places.map(\.member) }

  /// The place in subscription order that the next subscriber gets.
  var nextID: Int { lastID + 1 }

  /// Adds a subscriber behind the others; what is kept will be replayed to it.
  mutating func add(_ member: Member) {
    lastID += 1
    places.append(Place(id: lastID, member: member))
    guard kept.count > 0 else { return }
    jobs.append(.replay(receiver: lastID, last: lastPost, done: 0))
    replayCount += 1
  }

  /// Removes a subscriber; an offer that it has not begun to handle is withdrawn, and one that it has begun
  /// with has failed.
  ///
  /// - Parameters:
  ///   - id: The place of the subscriber.
  ///   - answers: Whether the subscriber still answers an offer that it has begun to handle.
  /// - Returns: The subscriber, to be released without a lock, if it was there.
  mutating func remove(_ id: Int, answers: Bool = false) -> Member? {
    let index = firstPlace(from: id)
    guard index < places.count, places[index].id == id else { return nil }
    if let offer = openOffer, offer.receiver == id, !(answers && offer.isStarted) {
      finish(offer.number, as: offer.isStarted ? .failed : .unreached)
    }
    let member = places.remove(at: index).member
    // While a handler takes long, others may come and go behind it.
    if replayCount > 2 * places.count + 32 { dropVainReplays() }
    return member
  }

  /// Queues an event, and keeps it if it is to be kept.
  ///
  /// - Returns: The number of the post.
  mutating func post(
    _ element: Element,
    _ persistence: EventPersistence,
    at now: Nanoseconds
  ) -> Int {
    lastPost += 1
    guard let rule = persistence.rule else {
      jobs.append(.fanOut(element, post: lastPost, last: lastID))
      return lastPost
    }
    let deadline = persistence.timeToLive.map {
      now.addingSaturating(Nanoseconds(saturating: $0))
    }
    if deadline ?? .max > now { kept.append(element, of: lastPost, rule: rule, deadline: deadline) }
    dropExpired(at: now)
    if let limit = persistence.limit { kept.limit(to: limit, into: &released) }
    jobs.append(.delivery(Delivery(element: element, post: lastPost, rule: rule, last: lastID)))
    return lastPost
  }

  /// Takes the next step, unless an offer is open or there is nothing to do.
  mutating func next(at now: Nanoseconds) -> Step? {
    guard openOffer == nil else { return nil }
    while let job = current ?? jobs.popFirst() {
      current = nil
      switch job {
      case .fanOut(let element, let post, let last):
        released.append(element)
        return .fanOut(element, post: post, last: last)
      case .delivery(let delivery):
        return step(of: delivery, at: now)
      case .replay(let receiver, let last, let done):
        if done == 0 { replayCount -= 1 }
        if let step = replay(to: receiver, after: done, upTo: last, at: now) { return step }
      }
    }
    return nil
  }

  /// A subscriber begins to handle what it was offered.
  ///
  /// - Returns: Whether the offer still stands.
  mutating func start(_ offer: Int) -> Bool {
    guard openOffer?.number == offer else { return false }
    openOffer?.isStarted = true
    return true
  }

  /// An offer has ended; one that was withdrawn is ignored.
  mutating func finish(_ offer: Int, as ending: Handler.Ending) {
    guard openOffer?.number == offer else { return }
    openOffer = nil
    switch current {
    case .delivery(var delivery):
      if ending != .unreached { delivery.notified += 1 }
      if ending == .succeeded {
        delivery.handled += 1
        if delivery.rule == .clearImmediately { clear(post: delivery.post) }
      }
      current = .delivery(delivery)
    case .replay(_, _, let post):
      if ending == .succeeded { clear(post: post) }
    case .fanOut, nil:
      break
    }
  }

  /// Whether the event of a post is kept.
  func isKept(post: Int, at now: Nanoseconds) -> Bool {
    kept.contains(post: post, at: now)
  }

  /// How far the post of a kept event has got.
  func progress(of post: Int, at now: Nanoseconds) -> PostOutcome {
    var (notified, handled) = (0, 0)
    if case .delivery(let delivery) = current, delivery.post == post {
      (notified, handled) = (delivery.notified, delivery.handled)
    }
    return PostOutcome(
      notified: notified,
      handled: handled,
      isPersisted: isKept(post: post, at: now)
    )
  }

  /// The kept events in posting order.
  mutating func pending(at now: Nanoseconds) -> [Element] {
    dropExpired(at: now)
    return kept.elements
  }

  /// Keeps none of the events posted so far any longer.
  mutating func removePending() {
    kept.removeAll(into: &released)
  }

  /// Keeps the events no longer whose time is over.
  mutating func dropExpired(at now: Nanoseconds) {
    kept.dropExpired(at: now, into: &released)
  }

  /// Hands out what has left, to be released without a lock.
  mutating func takeReleased() -> ContiguousArray<Element> {
    guard !released.isEmpty else { return [] }
    defer { released = [] }
    return released
  }

  private mutating func step(of delivery: Delivery, at now: Nanoseconds) -> Step {
    let isDone = delivery.rule == .clearImmediately && delivery.handled > 0
    let index = firstPlace(from: delivery.cursor + 1)
    if !isDone, index < places.count, places[index].id <= delivery.last {
      var delivery = delivery
      delivery.cursor = places[index].id
      current = .delivery(delivery)
      return offer(delivery.element, to: places[index])
    }
    if delivery.handled > 0 { clear(post: delivery.post) }
    released.append(delivery.element)
    return .end(
      post: delivery.post,
      PostOutcome(
        notified: delivery.notified,
        handled: delivery.handled,
        isPersisted: isKept(post: delivery.post, at: now)
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
    guard let (post, element) = kept.first(after: done, upTo: last, at: now) else { return nil }
    current = .replay(receiver: receiver, last: last, done: post)
    return offer(element, to: places[place])
  }

  /// Removes the replays that have nobody to go to.
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

  /// The index of the first subscriber that is not before the given one.
  private func firstPlace(from id: Int) -> Int {
    places.firstSortedIndex { $0.id >= id }
  }

  private mutating func clear(post: Int) {
    kept.clear(post: post, into: &released)
  }
}
