import TestSupport
import Testing

@testable import Plexus

@Suite(.fewAtOnce, .timeLimit(.minutes(20))) struct `The subscribers to the changes of a store` {
  final class Feed: ChangeFeed {
    let number: Int
    let finished: Log<Int>
    /// What happens when those are to be removed whose owners have gone.
    let look: @Sendable () -> Void

    init(_ number: Int, _ finished: Log<Int>, look: @escaping @Sendable () -> Void = {}) {
      self.number = number
      self.finished = finished
      self.look = look
    }

    func finish() { finished.append(number) }

    func removeOrphans() { look() }
  }

  @Test func `are ended in subscription order, and later ones at once`() {
    let feeds = ChangeFeeds()
    let finished = Log<Int>()
    let ids = (0..<20).map { _ in FeedID() }
    for (number, id) in ids.enumerated() { feeds.insert(Feed(number, finished), id: id) }
    feeds.remove(ids[7])
    #expect(feeds.count == 19)
    #expect(feeds.finish() == ids.filter { $0 != ids[7] })
    #expect(finished.entries == (0..<20).filter { $0 != 7 })
    feeds.insert(Feed(20, finished), id: FeedID())
    #expect(finished.entries.last == 20)
    #expect(feeds.count == 0)
  }

  @Test func `are not counted any more when their owners have gone, which is found without a lock`()
  {
    let feeds = ChangeFeeds()
    let ids = (0..<3).map { _ in FeedID() }
    for (number, id) in ids.enumerated() {
      feeds.insert(
        Feed(number, Log()) { if number == 1 { withoutLocks { feeds.remove(id) } } },
        id: id
      )
    }
    #expect(feeds.count == 2)
    #expect(feeds.finish() == [ids[0], ids[2]])
  }
}
