import Plexus
import PlexusTesting
import TestSupport
import Testing

/// New subscribers of combinations, while elements are being made and sources change on other threads.
@Suite(.fewAtOnce) struct `A new subscriber of a combination` {
  @Test(.guarantee(.viewsMissNothingAfterCurrent))
  func `a new subscriber of a combination begins with the value set before, not an older one`()
    async
  {
    let (value, other) = (CurrentValue(0), CurrentValue(0))
    let (action, late) = (Guarded<(@Sendable () -> Void)?>(nil), Guarded<[Subscription<Int>]>([]))
    let sum = combine(value, other, value.select { $0 }) { number, other, part in
      if let body = action.withLock({ $0.take() }) { withoutLocks(body) }
      #expect(number == part)
      return number + 100 * other
    }
    let doubled = sum.select { 2 * $0 }
    let early = (
      sum.subscription(bufferingPolicy: .unbounded),
      doubled.subscription(bufferingPolicy: .unbounded)
    )
    action.withLock {
      $0 = {
        value.value = 2
        other.value = 1
        #expect(sum.current == 102)
        #expect(doubled.current == 204)
        let new = sum.subscription(bufferingPolicy: .unbounded)
        let second = doubled.subscription(bufferingPolicy: .unbounded)
        late.withLock { $0 = [new, second] }
        value.value = 3
      }
    }
    value.value = 1
    value.value = 4
    #expect(await early.0.first(6) == [0, 1, 2, 102, 103, 104])
    #expect(await early.1.first(6) == [0, 2, 4, 204, 206, 208])
    let streams = late.withLock { $0 }
    #expect(await streams[0].first(3) == [102, 103, 104])
    #expect(await streams[1].first(3) == [204, 206, 208])
  }

  @Test(.guarantee(.viewsMissNothingAfterCurrent))
  func `a new subscriber of a combination misses nothing and gets nothing twice among threads`()
    async
  {
    let (value, other) = (CurrentValue(0), CurrentValue(0))
    let pair = combine(value.select { $0 }, value.map { 2 * $0 }, other) { number, double, _ in
      #expect(double == 2 * number)
      return number
    }
    let early = pair.subscribe()
    await withTaskGroup { group in
      for _ in 0..<2 {
        group.addTask { for _ in 0..<1_000 { value.update { $0 += 1 } } }
        group.addTask { for _ in 0..<1_000 { other.update { $0 += 1 } } }
        group.addTask {
          for _ in 0..<300 {
            let current = pair.current
            let subscription = pair.subscription(bufferingPolicy: .unbounded)
            value.update { $0 += 1 }
            var seen: [Int] = []
            for await number in subscription {
              if seen.last != number { seen.append(number) }
              if seen.count == 2 { break }
            }
            #expect(seen[0] >= current, "\(seen) after \(current)")
            #expect(seen[1] == seen[0] + 1, "it misses nothing")
          }
        }
      }
    }
    withExtendedLifetime(early) {}
    #expect(pair.current == 2_600)
  }

  @Test(.guarantee(.combinationsSubscribeOnce))
  func `subscribers of a combination on several threads leave nothing behind`() async {
    let (value, other) = (CurrentValue(0), CurrentValue(0))
    let sum = combine(value, other) { $0 + $1 }
    await withTaskGroup { group in
      group.addTask { for _ in 0..<2_000 { value.update { $0 += 1 } } }
      for _ in 0..<3 {
        group.addTask {
          for _ in 0..<500 {
            let first = await sum.subscription(bufferingPolicy: .unbounded).first(1)
            #expect(first.count == 1)
            #expect(first[0] <= sum.current)
          }
        }
      }
    }
    #expect(sum.subscriberCount == 0)
    #expect([value.subscriberCount, other.subscriberCount] == [0, 0])
    #expect(sum.current == 2_000)
  }
}
