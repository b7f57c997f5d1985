import Plexus
import TestSupport
import Testing

@Suite(.fewAtOnce) struct `A load state` {
  @Test(.guarantee(.statesCanBeMapped))
  func `a load state has the newest known value, fresh or previous`() {
    #expect(LoadState<Int>.unknown.value == nil)
    #expect(LoadState<Int>.loading(previous: nil).value == nil)
    #expect(LoadState<Int>.loading(previous: 1).value == 1)
    #expect(LoadState<Int>.loaded(2).value == 2)
    #expect(LoadState<Int>.failed(Broken(), previous: nil).value == nil)
    #expect(LoadState<Int>.failed(Broken(), previous: 3).value == 3)
  }

  @Test(.guarantee(.statesCanBeMapped)) func `a load state has an error in the failed state only`()
  {
    #expect(
      LoadState<Int>.failed(Broken(reason: "7"), previous: 1).error as? Broken
        == Broken(reason: "7")
    )
    for state in [LoadState<Int>.unknown, .loading(previous: 1), .loaded(1)] {
      #expect(state.error == nil)
    }
  }

  @Test(.guarantee(.statesCanBeMapped)) func `a load state is loading in the loading state only`() {
    #expect(LoadState<Int>.loading(previous: nil).isLoading)
    #expect(LoadState<Int>.loading(previous: 1).isLoading)
    #expect(!LoadState<Int>.unknown.isLoading)
    #expect(!LoadState<Int>.loaded(1).isLoading)
    #expect(!LoadState<Int>.failed(Broken(), previous: 1).isLoading)
  }

  @Test(.guarantee(.statesCanBeMapped))
  func `a load state keeps its case when its value is mapped`() {
    let double: (Int) -> String = { "\($0 * 2)" }
    guard case .unknown = LoadState<Int>.unknown.map(double) else {
      Issue.record("unknown has changed")
      return
    }
    guard case .loading(nil) = LoadState<Int>.loading(previous: nil).map(double) else {
      Issue.record("loading has changed")
      return
    }
    guard case .loading("4") = LoadState<Int>.loading(previous: 2).map(double) else {
      Issue.record("loading has lost its value")
      return
    }
    guard case .loaded("6") = LoadState<Int>.loaded(3).map(double) else {
      Issue.record("loaded has lost its value")
      return
    }
    let failed = LoadState<Int>.failed(Broken(reason: "1"), previous: 4).map(double)
    #expect(failed.value == "8")
    #expect(failed.error as? Broken == Broken(reason: "1"))
    #expect(LoadState<Int>.failed(Broken(), previous: nil).map(double).value == nil)
  }

  @Test
  func `a load state calls the transformation only if there is a value, and passes its error on`() {
    let failing: (Int) throws(Broken) -> Int = { _ throws(Broken) in throw Broken(reason: "2") }
    for state in [
      LoadState<Int>.unknown, .loading(previous: nil), .failed(Broken(), previous: nil),
    ] {
      #expect(throws: Never.self) { try state.map(failing) }
    }
    for state in [LoadState<Int>.loaded(1), .loading(previous: 1), .failed(Broken(), previous: 1)] {
      #expect(throws: Broken(reason: "2")) { try state.map(failing) }
    }
  }
}
