import TestSupport
import Testing

@testable import PlexusNetworking

@Suite struct `The state of a view of an image` {
  private typealias State = MediaImageState<Int, String>

  private var empty: State { State().showing(nil) { _ in nil } }

  @Test func `an image in memory is shown at once, without loading`() {
    let state = empty.showing(1) { "image \($0)" }
    #expect(state.image == "image 1" && !state.isLoading && !state.isMissing)
    let again = state.showing(1) { _ in
      Issue.record("The memory is asked once for each request")
      return nil
    }
    #expect(again.image == "image 1")
  }

  @Test func `the old image stays until the new one is there`() {
    var state = empty.showing(1) { _ in "one" }.showing(2) { _ in nil }
    #expect(state.image == "one" && state.isLoading && state.isMissing)
    state.finish(1, with: "late")
    #expect(state.image == "one" && state.isLoading)
    state.finish(2, with: "two")
    #expect(state.image == "two" && !state.isLoading && !state.isMissing)
  }

  @Test func `a failure takes the place of the old image, and is tried again`() {
    var state = empty.showing(1) { _ in "one" }.showing(2) { _ in nil }
    state.finish(1, with: Wrong())
    #expect(state.image == "one" && state.error == nil)
    state.finish(2, with: Wrong())
    #expect(state.image == nil && state.error is Wrong && !state.isLoading && state.isMissing)
    state.begin()
    #expect(state.error == nil && state.isLoading)
    state.finish(2, with: "two")
    #expect(state.image == "two" && !state.isMissing)
  }

  @Test func `a view without a request shows nothing`() {
    let state = empty.showing(1) { _ in "one" }.showing(nil) { _ in "none" }
    #expect(state.image == nil && state.error == nil && !state.isLoading && !state.isMissing)
  }

  @Test func `no history of a view shows an image of another than the last two requests`() {
    for seed in 0..<1_000 as Range<UInt64> {
      var (random, state) = (SeededRandom(seed: seed), State())
      // The request whose image is shown, and what is in memory.
      var shown: Int?
      var memory: Set<Int> = []
      for _ in 0..<40 {
        let request = Int.random(in: 0..<4, using: &random)
        switch Int.random(in: 0..<5, using: &random) {
        case 0:
          let isNew = request != state.request
          state = state.showing(request) { memory.contains($0) ? "\($0)" : nil }
          if isNew, memory.contains(request) { shown = request }
          #expect(state.request == request)
          if isNew { #expect(state.isLoading != memory.contains(request)) }
        case 1:
          state.finish(request, with: "\(request)")
          if request == state.request { shown = request }
        case 2:
          state.finish(request, with: Wrong())
          if request == state.request { shown = nil }
        case 3:
          state = state.showing(nil) { _ in nil }
          shown = nil
        default:
          memory.formSymmetricDifference([request])
        }
        #expect(state.image == shown.map { "\($0)" })
        #expect(!state.isLoading || state.error == nil)
        #expect(state.request != nil || !state.isMissing)
      }
    }
  }
}
