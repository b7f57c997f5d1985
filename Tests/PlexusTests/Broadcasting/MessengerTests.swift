import Plexus
import TestSupport
import Testing

@Suite(.fewAtOnce) struct `A messenger` {
  @Test(.guarantee(.messagesAreNotReplayed))
  func `a messenger replays nothing to later subscribers`() async {
    let messenger = Messenger<Int>()
    messenger.send(1)
    let early = messenger.subscription()
    messenger.send(2)
    let late = messenger.subscription()
    messenger.send(3)
    messenger.finish()
    #expect(await early.all() == [2, 3])
    #expect(await late.all() == [3])
  }

  @Test(.guarantee(.finishedMessengersEndTheirStreams))
  func `a messenger that has finished ignores what is sent and ends later streams at once`() async {
    let messenger = Messenger<Int>()
    let stream = messenger.subscribe()
    let ignoring = messenger.subscribe(ignoring: Author())
    let log = Log<Int>()
    let token = messenger.observe { (number: Int) in log.append(number) }
    messenger.send(1)
    messenger.finish()
    messenger.finish()
    messenger.send(2)
    #expect(messenger.subscriberCount == 0)
    #expect(await stream.all() == [1])
    #expect(await ignoring.all() == [1])
    #expect(await messenger.subscribe().all().isEmpty)
    #expect(await messenger.subscribe(ignoring: Author()).all().isEmpty)
    #expect(await messenger.subscribe(bufferingPolicy: .bufferingNewest(1)).all().isEmpty)
    await log.first(1)
    let late = messenger.observe { (number: Int) in log.append(number) }
    let lateAsync = messenger.observe { (number: Int) async in log.append(number) }
    messenger.send(3)
    #expect(messenger.subscriberCount == 0)
    late.cancel()
    lateAsync.cancel()
    #expect(log.entries == [1])
    withExtendedLifetime(token) {}
  }

  @Test(.guarantee(.subscriberCountIncludesAllKinds))
  func `a messenger counts streams, subscriptions and handlers alike`() {
    let messenger = Messenger<Int>()
    let owner = Owner()
    let stream = messenger.subscribe()
    let subscription = messenger.subscription(bufferingPolicy: .bufferingNewest(1))
    let ignoring = messenger.subscription(ignoring: Author())
    let token = messenger.observe { (_: Int) in }
    let asyncToken = messenger.observe { (_: Int) async in }
    messenger.observe(as: owner) { _, _ in }
    messenger.observe(as: owner) { _, _ async in }
    #expect(messenger.subscriberCount == 7)
    withExtendedLifetime((stream, subscription, ignoring, token, asyncToken, owner)) {}
  }

  @Test(
    .guarantee(.ignoredAuthorsDoNotCount),
    arguments: [Policy.unbounded, .newest(2), .oldest(2)]
  )
  func `a messenger delivers no messages of an author that a subscriber ignores`(
    policy: Policy
  ) async {
    let messenger = Messenger<Int>()
    let (me, you) = (Author(), Author())
    let mine = messenger.subscribe(ignoring: me, bufferingPolicy: policy())
    let yours = messenger.subscription(ignoring: you, bufferingPolicy: policy())
    let everything = messenger.subscribe()
    messenger.send(1, from: me)
    messenger.send(2, from: you)
    messenger.send(3)
    // Ignored messages do not count for the buffer.
    for number in 4..<10 { messenger.send(number, from: me) }
    messenger.finish()
    #expect(await mine.all() == [2, 3])
    let expected: [Int] =
      switch policy {
      case .unbounded: [1, 3] + Array(4..<10)
      case .newest: [8, 9]
      case .oldest: [1, 3]
      }
    #expect(await yours.all() == expected)
    #expect(yours.droppedCount == (policy == .unbounded ? 0 : 6))
    #expect(await everything.all() == Array(1..<10))
  }

  @Test(.guarantee(.ignoredAuthorsDoNotCount))
  func `a messenger prevents an endless loop of two objects that answer each other`() async {
    let messenger = Messenger<Int>()
    let author = Author()
    let heard = messenger.subscription(ignoring: author)
    let answering = Task {
      for await number in heard {
        messenger.send(number + 1, from: author)
        if number == 10 { break }
      }
    }
    let all = messenger.subscription()
    messenger.send(0)
    messenger.send(10)
    await answering.value
    #expect(Set(await all.first(4)) == [0, 1, 10, 11])
    messenger.finish()
    #expect(await all.all().isEmpty)
  }

  @Test(.guarantee(.authorsHaveTheirOwnIdentity))
  func `a messenger gives every author its own identity`() {
    let authors = (0..<100).map { _ in Author() }
    #expect(Set(authors).count == 100)
    let copy = authors[0]
    #expect(copy == authors[0])
  }

  @Test(.guarantee(.finishedMessengersEndTheirStreams))
  func `a messenger finished within a handler still delivers to all what was sent before`() async {
    let messenger = Messenger<Int>()
    let log = Log<String>()
    let tokens = ["a", "b"].map { name in
      messenger.observe { (number: Int) in
        if number == 1 { messenger.finish() }
        log.append("\(name)\(number)")
      }
    }
    for number in 0..<3 { messenger.send(number) }
    #expect(await log.first(2) == ["a0", "b0"])
    await log.contains("b1")
    withExtendedLifetime(tokens) {}
  }

  // The three documented ways to store a messenger.

  struct DatabaseUpdate: Equatable, Sendable {
    let key: String
  }

  protocol Database: Sendable {
    var messenger: Messenger<DatabaseUpdate> { get }
  }

  @Test(.guarantee(.messengersCanBeRequiredByProtocols))
  func `a messenger can be required by a protocol`()
    async
  {
    struct MemoryDatabase: Database {
      let messenger = Messenger<DatabaseUpdate>()
    }
    let database: any Database = MemoryDatabase()
    let updates = database.messenger.subscribe()
    database.messenger.send(DatabaseUpdate(key: "a"))
    #expect(await updates.first(1) == [DatabaseUpdate(key: "a")])
  }

  @Test(.guarantee(.messengersCanBeRequiredByProtocols))
  func `a messenger can be stored as any broadcaster of its messages`() async {
    struct View: Sendable {
      let updates: any Broadcaster<DatabaseUpdate>
    }
    let messenger = Messenger<DatabaseUpdate>()
    let view = View(updates: messenger)
    let stream = view.updates.subscribe(bufferingPolicy: .unbounded)
    let log = Log<DatabaseUpdate>()
    let token = view.updates.observe { (update: DatabaseUpdate) in log.append(update) }
    #expect(view.updates.subscriberCount == 2)
    messenger.send(DatabaseUpdate(key: "a"))
    #expect(await stream.first(1) == [DatabaseUpdate(key: "a")])
    #expect(await log.first(1) == [DatabaseUpdate(key: "a")])
    withExtendedLifetime(token) {}
  }

  @Test(.guarantee(.messengersCanBeRequiredByProtocols))
  func `a messenger of a class can exist beside a messenger of its superclass`() async {
    class Tree: @unchecked Sendable {
      enum Event: Sendable { case grew }
      let treeMessenger = Messenger<Event>()
    }
    final class AppleTree: Tree, @unchecked Sendable {
      enum Event: Sendable { case appleFell }
      let messenger = Messenger<Event>()
    }
    let tree = AppleTree()
    let growth = tree.treeMessenger.subscribe()
    let apples = tree.messenger.subscribe()
    tree.treeMessenger.send(.grew)
    tree.messenger.send(.appleFell)
    #expect(await growth.first(1) == [.grew])
    #expect(await apples.first(1) == [.appleFell])
  }
}
