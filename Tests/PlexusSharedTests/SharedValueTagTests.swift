import Plexus
import PlexusSharedTesting
import PlexusTesting
import TestSupport
import Testing

@Suite(.fewAtOnce) struct `Tags of values with a shared tier` {
  @Test(.startsProcess) func `a shared cacher and tags of values stop the program with a sentence`()
    async
  {
    await #expect(processExitsWith: .failure) {
      _ = MultiplexerMap<String, String>(
        id: "values",
        cacher: SharedMemory<String>(clock: ContinuousClock()).node(),
        valueTagging: { _, _ in [] },
        onKeyFetch: { $0 }
      )
    }
  }
}
