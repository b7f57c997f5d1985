import Testing

@Suite struct `A history of requests and clears` {
  private func violations(
    _ lines: String...,
    lost: ClosedRange<UInt64>? = nil
  ) -> [HistoryState.Violation] {
    HistoryState(lines.joined(separator: "\n")).violations(lease: 100, lost: lost).map(\.violation)
  }

  @Test(arguments: [
    "clear a 20 30 everywhere 1.2", "clear a 20 30 everywhere 1", "clear a 20 30 everywhere ",
  ])
  func `a history has a stale value if its fetch began before a clear that had returned`(
    clear: String
  ) {
    #expect(violations(clear, "get b 31 40 1.2 1.2 7 19") == [.cleared])
    #expect(violations("get b 31 40 1.2 1.2 7 19", clear) == [.cleared])
  }

  @Test
  func `a history has no stale value if the clear had not returned, or the fetch began with it`() {
    #expect(violations("clear a 20 30 everywhere 1.2", "get b 30 40 1.2 1.2 7 19").isEmpty)
    #expect(violations("clear a 20 30 everywhere 1.2", "get b 31 40 1.2 1.2 7 20").isEmpty)
  }

  @Test(arguments: ["1.3", "2", "1.22"]) func `a history has no stale value of another key`(
    subject: String
  ) {
    #expect(violations("clear a 20 30 everywhere \(subject)", "get b 31 40 1.2 1.2 7 19").isEmpty)
  }

  @Test func `a history has the longest clear among several that overlap`() {
    let clears = [
      "clear a 20 50 everywhere ", "clear a 10 60 everywhere ", "clear a 15 30 shared 1.2",
    ]
    #expect(violations(clears[0], clears[1], clears[2], "get b 70 80 1.2 1.2 7 19") == [.cleared])
    #expect(violations(clears[0], clears[1], clears[2], "get b 70 80 1.2 1.2 7 20").isEmpty)
    #expect(violations(clears[1], clears[2], "get b 55 80 1.2 1.2 7 14").isEmpty)
  }

  @Test func `a history has a shared clear at once in its process, and in others after the lease`()
  {
    #expect(violations("clear a 20 30 shared 1", "get a 31 40 1.2 1.2 7 19") == [.cleared])
    #expect(violations("clear a 20 30 shared 1", "get b 130 140 1.2 1.2 7 19").isEmpty)
    #expect(violations("clear a 20 30 shared 1", "get b 131 140 1.2 1.2 7 19") == [.cleared])
  }

  @Test func `a history has no promise of a shared clear that was lost, except in its process`() {
    let clear = "clear a 20 30 shared 1"
    #expect(violations(clear, "get b 131 140 1.2 1.2 7 19", lost: 30...50).isEmpty)
    #expect(violations(clear, "get b 131 140 1.2 1.2 7 19", lost: 31...50) == [.cleared])
    #expect(violations(clear, "get a 131 140 1.2 1.2 7 19", lost: 30...50).contains(.cleared))
    let everywhere = "clear a 20 30 everywhere 1"
    #expect(violations(everywhere, "get b 131 140 1.2 1.2 7 19", lost: 30...50) == [.cleared])
  }

  @Test func `a history goes back if a process returns an older version than before`() {
    let older = "get b 1 3 1.2 1.2 6 2"
    #expect(violations(older, "get a 4 6 1.2 1.2 7 5", "get a 7 8 1.2 1.2 6 2") == [.wentBack])
    #expect(violations(older, "get a 4 7 1.2 1.2 7 5", "get a 7 8 1.2 1.2 6 2").isEmpty)
    #expect(violations(older, "get c 4 6 1.2 1.2 7 5", "get a 7 8 1.2 1.2 6 2").isEmpty)
    #expect(violations(older, "get a 4 6 1.3 1.3 7 5", "get a 7 8 1.2 1.2 6 2").isEmpty)
  }

  @Test func `a history has no order of fetches that overlap`() {
    let older = "get b 1 6 1.2 1.2 6 2"
    #expect(violations(older, "get a 4 6 1.2 1.2 7 5", "get a 7 8 1.2 1.2 6 2").isEmpty)
    #expect(violations("get a 4 6 1.2 1.2 7 5", "get a 7 8 1.2 1.2 6 2").isEmpty)
  }

  @Test func `a history has failed requests and foreign values`() {
    #expect(violations("get a 1 2 1.2 offline") == [.failed])
    #expect(violations("get a 1 2 1.2 1.3 7 1") == [.foreign])
    #expect(violations("get a 1 2 1.2 1.2 7 3") == [.foreign])
    #expect(violations("cut") == [.failed])
  }
}
