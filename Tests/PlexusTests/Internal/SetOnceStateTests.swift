import TestSupport
import Testing

@testable import Plexus

@Suite(.fewAtOnce, .timeLimit(.minutes(20))) struct `A value that is set once` {
  /// What can be shared, around what cannot be copied.
  final class Holder<Value: Sendable>: Sendable {
    private let once = SetOnce<Value>()

    var value: Value? { once.value }

    func set(_ value: Value) -> Bool { once.set(value) }
  }

  @Test func `is there from the first call on, which wins`() {
    let holder = Holder<String>()
    #expect(holder.value == nil)
    #expect(holder.set("first"))
    #expect(!holder.set("second"))
    #expect(holder.value == "first")
  }

  @Test func `is released with its holder, and what came too late at once`() {
    let census = Census()
    var holder: Holder<Parcel>? = Holder()
    #expect(holder?.set(census.parcel(1)) == true)
    #expect(holder?.set(census.parcel(2)) == false)
    #expect(census.living == 1)
    #expect(holder?.value?.number == 1)
    holder = nil
    #expect(census.living == 0)
    _ = Holder<Parcel>()
  }

  @Test func `is the same for everybody who has seen it, whoever set it`() async {
    for _ in 0..<200 {
      let holder = Holder<[Int]>()
      let winners = await withTaskGroup(of: Int?.self) { group -> [Int] in
        for number in 0..<4 {
          group.addTask {
            let isFirst = holder.set(Array(repeating: number, count: 8))
            // Whoever comes second may be faster than the first, who is not ready yet.
            guard let seen = holder.value else { return nil }
            #expect(Set(seen).count == 1 && seen.count == 8)
            return isFirst ? seen[0] : nil
          }
        }
        var winners: [Int] = []
        for await number in group { if let number { winners.append(number) } }
        return winners
      }
      #expect(winners.count == 1)
      #expect(holder.value?.first == winners.first)
    }
  }
}
