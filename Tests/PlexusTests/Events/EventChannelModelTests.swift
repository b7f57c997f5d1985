import TestSupport
import Testing

@testable import Plexus

/// Every sequence of steps of a channel, compared with a model of its visible behavior.
@Suite(.fewAtOnce) struct `Event channel model` {
  enum Happening: Hashable {
    case subscribe
    case unsubscribe(Int)
    case post(PersistenceRule?)
    case start
    case finish(Bool)
    case removePending
  }

  /// The state, and the model of its visible behavior.
  struct World {
    struct Posted {
      let rule: PersistenceRule?
      /// The subscribers at the time of the post.
      let live: Set<Int>
      var offeredTo: [Int] = []
      var hasSucceeded = false
      var hasEnded = false
      var isRemoved = false
      /// Whether it can no longer be retained.
      var isCleared: Bool {
        isRemoved || rule == nil
          || hasSucceeded && (rule == .clearImmediately || rule != .neverClear && hasEnded)
      }
    }

    var state = EventChannel.OffersState<Int, Int>()
    var members: [Int] = []
    /// The number of the post up to which each subscriber gets no events that go to all.
    var passed: [Int: Int] = [:]
    var posts: [Posted] = []
    var lastMember = 0
    var open: (offer: Int, post: Int, member: Int, isStarted: Bool)?
    /// The events that each subscriber has received, in order.
    var seen: [Int: [Int]] = [:]
    var history: [Happening] = []
    var brokenPromise: String?

    var possible: [Happening] {
      var possible: [Happening] = []
      if lastMember < 3 { possible.append(.subscribe) }
      possible += members.map { .unsubscribe($0) }
      if posts.count < 3 {
        possible += [
          .post(nil), .post(.clearImmediately),
          .post(.clearAfterAllCurrentSubscribersNotified), .post(.neverClear),
        ]
      }
      if let open {
        if open.isStarted {
          possible += [.finish(true), .finish(false)]
        } else if members.contains(open.member) {
          possible.append(.start)
        }
      }
      if posts.contains(where: { !$0.isCleared }) { possible.append(.removePending) }
      return possible
    }

    mutating func apply(_ happening: Happening) {
      history.append(happening)
      switch happening {
      case .subscribe:
        lastMember += 1
        members.append(lastMember)
        passed[lastMember] = state.passed
        state.add(lastMember)
      case .unsubscribe(let member):
        members.removeAll { $0 == member }
        expect(state.remove(member) == member, "the wrong one was removed")
        if let offer = open, offer.member == member {
          if !offer.isStarted {
            posts[offer.post].offeredTo.removeLast()
            seen[member]?.removeLast()
          }
          // A started offer has failed.
          open = nil
        }
      case .post(let rule):
        posts.append(Posted(rule: rule, live: Set(members)))
        let persistence = rule.map { EventPersistence.persistent($0) } ?? .none
        expect(
          state.post(posts.count - 1, persistence, at: 0) == posts.count,
          "the posts are not counted"
        )
      case .start:
        guard let offer = open else { return }
        expect(state.start(offer.offer), "an offer that stands cannot be begun")
        open?.isStarted = true
      case .finish(let succeeds):
        guard let offer = open else { return }
        state.finish(offer.offer, as: succeeds ? .succeeded : .failed)
        if succeeds, !posts[offer.post].hasEnded || posts[offer.post].rule != .neverClear {
          posts[offer.post].hasSucceeded = true
        }
        open = nil
      case .removePending:
        state.removePending()
        for index in posts.indices { posts[index].isRemoved = true }
      }
      while let step = state.next(at: 0) { take(step) }
      check()
    }

    private mutating func take(_ step: EventChannel.OffersState<Int, Int>.Step) {
      switch step {
      case .fanOut(let post, let number):
        expect(number == post + 1 && posts[post].rule == nil, "the wrong event went to all")
        for member in members where number > passed[member, default: 0] {
          expect(posts[post].live.contains(member), "one who came later got an event")
          deliver(post, to: member)
        }
        posts[post].hasEnded = true
      case .offer(let offer):
        expect(open == nil, "two offers at once")
        expect(members.contains(offer.member), "an offer without a subscriber")
        let post = posts[offer.element]
        if post.hasEnded {
          expect(!post.live.contains(offer.member), "a replay of a delivered event")
          expect(!post.isCleared, "a replay of what is kept no longer")
        } else {
          expect(post.live.contains(offer.member), "a live event for one who came later")
          expect(
            !(post.rule == .clearImmediately && post.hasSucceeded),
            "delivery went on after a success"
          )
        }
        open = (offer.number, offer.element, offer.member, false)
        deliver(offer.element, to: offer.member)
      case .end(let post, let outcome):
        posts[post - 1].hasEnded = true
        let ended = posts[post - 1]
        expect(outcome.isPersisted == !ended.isCleared, "the outcome is wrong")
        expect((outcome.handled > 0) == ended.hasSucceeded, "the count of successes is wrong")
        expect(outcome.notified == ended.offeredTo.count, "the count of offers is wrong")
      }
    }

    private mutating func deliver(_ post: Int, to member: Int) {
      expect(!posts[post].offeredTo.contains(member), "an event twice for one subscriber")
      posts[post].offeredTo.append(member)
      seen[member, default: []].append(post)
    }

    private mutating func check() {
      for (member, seen) in seen {
        let live = seen.filter { posts[$0].live.contains(member) }
        let replayed = seen.filter { !posts[$0].live.contains(member) }
        expect(live == live.sorted() && replayed == replayed.sorted(), "out of order")
        expect(seen == replayed + live, "a live event before the end of the replay")
      }
      var copy = state
      let kept = posts.indices.filter { !posts[$0].isCleared }
      expect(copy.pending(at: 0) == kept, "the wrong events are kept")
      if open == nil {
        expect(state.isIdle, "a pending step is not performed")
        for (number, post) in posts.enumerated() {
          let reached = Set(post.offeredTo)
          let isOver = post.rule == .clearImmediately && post.hasSucceeded
          expect(
            isOver || post.live.intersection(members).isSubset(of: reached),
            "a gap: \(number) has not reached all who were there"
          )
          expect(
            post.isCleared || Set(members).isSubset(of: reached),
            "a gap: \(number) was not replayed to all who came later"
          )
        }
        expect(
          state.isEmpty == (members.isEmpty && kept.isEmpty),
          "the channel does not know whether it is of use"
        )
      }
    }

    private mutating func expect(_ isKept: Bool, _ promise: @autoclosure () -> String) {
      if !isKept, brokenPromise == nil { brokenPromise = promise() }
    }
  }

  private func walk(_ world: World, depth: Int) throws -> Int {
    guard depth > 0 else { return 1 }
    var count = 1
    for happening in world.possible {
      var next = world
      next.apply(happening)
      try #require(next.brokenPromise == nil, "after \(next.history)")
      count += try walk(next, depth: depth - 1)
    }
    return count
  }

  @Test func `every sequence of six steps keeps the guarantees of an event channel`() throws {
    #expect(try walk(World(), depth: 6) > 10_000)
  }

  @Test func `long random sequences keep the guarantees of an event channel`() throws {
    for seed in 0..<2000 {
      var random = SeededRandom(seed: UInt64(seed))
      var world = World()
      for _ in 0..<30 {
        guard let happening = world.possible.randomElement(using: &random) else { break }
        world.apply(happening)
        try #require(world.brokenPromise == nil, "after \(world.history)")
      }
    }
  }
}
