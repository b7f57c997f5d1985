import TestSupport
import Testing

@testable import PlexusTesting

@Suite(.fewAtOnce) struct `Job holder model` {
  @Test func `a hook that the runtime does not have is an obstacle, and a sentence says so`() {
    let sentence = JobHolder.installHook(named: "swift_task_noSuchHook")
    #expect(sentence?.contains("does not export swift_task_noSuchHook") == true)
    let failure = InterleavingFailure(schedule: [], reason: .unsupported(sentence ?? ""))
    #expect("\(failure)" == sentence)
  }

  @Test func `the hook that the runtime has is none`() {
    #expect(JobHolder.installHook(named: "swift_task_enqueueGlobal_hook") == nil)
  }

  @Test func `a hook that is there and is not asked is an obstacle, and a sentence says so`() {
    // What the runtime asks is the function of the one holder that everybody shares, not this one.
    let sentence = JobHolder().obstacle()
    #expect(sentence?.contains("does not call swift_task_enqueueGlobal_hook") == true)
    // It has not taken the hook from the other.
    #expect(throws: Never.self) { try forEveryInterleaving { await hop() } }
  }
}
