import Plexus
import PlexusTesting
import TestSupport
import Testing

/// Requests of references that a refresh by tag has returned, with tags of keys and with tags of values.
@Suite(.fewAtOnce) struct `A reference of a refresh by tag` {
  struct Numbered: Hashable, Sendable {
    var number: Int
  }

  private func keyTagging(
    _ tagsValues: Bool,
    _ tag: CacheTag
  ) -> (@Sendable (Int) -> [CacheTag])? {
    if tagsValues { return nil }
    return { _ in [tag] }
  }

  private func valueTagging(
    _ tagsValues: Bool,
    _ tag: CacheTag
  ) -> (@Sendable (Int, Numbered) -> [CacheTag])? {
    if !tagsValues { return nil }
    return { _, _ in [tag] }
  }

  @Test(arguments: [false, true])
  func `refreshes during each fetch do not keep a request of the reference waiting`(
    tagsValues: Bool
  ) async throws {
    let (own, tally) = (OwnCache<MultiplexerMap<Int, Numbered>>(), Tally())
    let tag: CacheTag = "tenant:5"
    let map = MultiplexerMap<Int, Numbered>(
      tagging: keyTagging(tagsValues, tag),
      valueTagging: valueTagging(tagsValues, tag),
      clock: ManualClock()
    ) { _ in
      let number = tally.increment()
      if number <= 20 { own.elements.first?.refresh(tags: [tag]) }
      return Numbered(number: number)
    }
    own.send(map)
    _ = await own.first()
    let newer = map.refresh(tags: [tag])
    #expect(try await newer.request(1).number <= 2)
  }

  @Test(arguments: [false, true])
  func `a request of a reference is answered by the first fetch after its refresh`(
    tagsValues: Bool
  ) async throws {
    let (gate, tally, clock) = (Gate(), Tally(), ManualClock())
    let tag: CacheTag = "tenant:5"
    let map = MultiplexerMap<Int, Numbered>(
      tagging: keyTagging(tagsValues, tag),
      valueTagging: valueTagging(tagsValues, tag),
      clock: clock
    ) { _ in
      let number = tally.increment()
      try await gate.wait()
      return Numbered(number: number)
    }
    let newer = map.refresh(tags: [tag])
    let caller = begin { try await newer.request(1) }
    await gate.arrivals(1)
    map.refresh(tags: [tag])
    gate.open()
    #expect(try await caller.value.number == 1)
  }
}
