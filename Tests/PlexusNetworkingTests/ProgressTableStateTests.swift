import TestSupport
import Testing

@testable import PlexusNetworking

@Suite(.fewAtOnce)
struct `The table of progress` {
  private func progress(_ bytes: Int) -> DownloadProgress {
    DownloadProgress(receivedBytes: Int64(bytes), totalBytes: nil)
  }

  @Test func `a stream that begins during a report does not go back behind it`() async throws {
    for _ in 0..<3_000 {
      let table = ProgressTable<Int>()
      let download = table.begin(1)
      table.report(progress(1), of: download, for: 1)
      async let reporting: Void = Task.detached {
        table.report(progress(2), of: download, for: 1)
      }.value
      let (stream, _) = table.subscribe(1)
      await reporting
      // Only the newest is kept for who does not read.
      table.finish(download, for: 1)
      var last: Int64?
      for await element in stream { last = element.receivedBytes }
      try #require(last == 2)
    }
  }

  @Test func `a stream is registered only after it received what is known`() {
    let table = ProgressTable<Int>()
    let download = table.begin(1)
    table.report(progress(1), of: download, for: 1)
    let (_, continuation) = AsyncStream.makeStream(of: DownloadProgress.self)
    #expect(table.register(continuation, 9, of: 1, unlessNewerThan: nil) == progress(1))
    table.report(progress(2), of: download, for: 1)
    #expect(table.register(continuation, 9, of: 1, unlessNewerThan: progress(1)) == progress(2))
    #expect(table.register(continuation, 9, of: 1, unlessNewerThan: progress(2)) == nil)
  }

  @Test func `a download begins with nothing of the one before`() async {
    let table = ProgressTable<Int>()
    let first = table.begin(1)
    table.report(progress(5), of: first, for: 1)
    let second = table.begin(1)
    let (stream, _) = table.subscribe(1)
    table.report(progress(6), of: first, for: 1)
    table.finish(first, for: 1)
    table.finish(second, for: 1)
    var seen: [Int64] = []
    for await element in stream { seen.append(element.receivedBytes) }
    #expect(seen.isEmpty)
  }
}
