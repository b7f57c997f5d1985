import TestSupport
import Testing

@testable import PlexusTesting

@Suite(.fewAtOnce) struct `Job holder model` {
  @Test func `a missing hook is reported in a sentence`() {
    let sentence = JobHolder.installHook(named: "swift_task_noSuchHook")
    #expect(sentence?.contains("does not export swift_task_noSuchHook") == true)
    let failure = InterleavingFailure(schedule: [], reason: .unsupported(sentence ?? ""))
    #expect("\(failure)" == sentence)
  }

  @Test func `the hook of the runtime is installed`() {
    #expect(JobHolder.installHook(named: "swift_task_enqueueGlobal_hook") == nil)
  }

  @Test func `a hook that is not called is reported in a sentence`() {
    // The runtime calls the hook of the shared holder, not the one of this holder.
    let sentence = JobHolder().obstacle()
    #expect(sentence?.contains("does not call swift_task_enqueueGlobal_hook") == true)
    // The shared holder still has the hook.
    #expect(throws: Never.self) { try forEveryInterleaving { await hop() } }
  }
}
