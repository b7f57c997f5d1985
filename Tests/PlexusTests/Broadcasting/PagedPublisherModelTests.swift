import TestSupport
import Testing

@testable import Plexus

/// Histories of a list that is loaded page by page, compared with a naive list.
@Suite(.fewAtOnce) struct `Paged publisher model` {
  typealias World = PagesWorld

  @Test(
    .guarantee(.publishersHoldInEveryOrder),
    arguments: PagesOrigin.Style.allCases,
    [nil, 1, 2]
  )
  func `every sequence of five events keeps every promise of a paged publisher`(
    style: PagesOrigin.Style,
    limit: Int?
  ) throws {
    var count = 0
    try walk(World(style: style, limit: limit), depth: 5, &count)
    #expect(count > 20_000)
  }

  private func walk(_ world: World, depth: Int, _ count: inout Int) throws {
    count += 1
    guard depth > 0 else { return }
    for event in world.possibleEvents {
      var next = world
      next.apply(event)
      try #require(next.brokenPromise == nil, "after \(next.history)")
      try walk(next, depth: depth - 1, &count)
    }
  }

  @Test(
    .guarantee(.publishersHoldInEveryOrder),
    arguments: PagesOrigin.Style.allCases,
    [nil, 1, 2, 3]
  )
  func `random histories of a paged publisher keep every promise`(
    style: PagesOrigin.Style,
    limit: Int?
  ) throws {
    for seed in 0..<UInt64(Effort.count(1_000)) {
      var random = SeededRandom(seed: seed)
      var world = World(style: style, limit: limit)
      for _ in 0..<80 {
        guard let event = world.possibleEvents.randomElement(using: &random) else { break }
        world.apply(event)
        try #require(world.brokenPromise == nil, "seed \(seed): \(world.history)")
      }
    }
  }
}
