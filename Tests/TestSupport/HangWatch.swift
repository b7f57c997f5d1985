import Foundation
public import Testing

/// Ends the process when its tests hang: a lost continuation costs a minute, and not the whole run.
///
/// A time limit of a test does not end a task that waits for nothing, and counts the time for which a busy machine does
/// something else. Therefore, tests hang if none of them has begun or ended for a minute in which the process was idle,
/// while it has used a processor for five minutes, or for ten minutes. After the first minute, they are named. In the end, the
/// load of the machine is shown and, if gdb is there, where those threads of the process and of its children are that have
/// something to do: also that of a test that never suspends and keeps the others waiting.
public final class HangWatch: Sendable {
  private struct State {
    var running: [Int: String] = [:]
    var changes = 0
  }

  /// The exit status of a process whose tests hang, which is that of timeout(1).
  static let exitStatus: Int32 = 124

  private static let shared = HangWatch()
  private static let step = 10.0

  private let state = Guarded(State())

  private init() {
    Thread.detachNewThread { [self] in watch() }
  }

  /// Runs a test case, which is named if it hangs.
  public static func observe(
    _ test: Test,
    _ body: @concurrent @Sendable () async throws -> Void
  ) async throws {
    let place = test.sourceLocation
    let id = shared.begin("\(test.displayName ?? test.name) (\(place.fileName):\(place.line))")
    defer { shared.end(id) }
    try await body()
  }

  private func begin(_ name: String) -> Int {
    state.withLock { state in
      state.changes += 1
      state.running[state.changes] = name
      return state.changes
    }
  }

  private func end(_ id: Int) {
    state.withLock { state in
      state.changes += 1
      state.running[id] = nil
    }
  }

  private func watch() {
    let never = DispatchSemaphore(value: 0)
    var (changes, silence, start) = (-1, 0.0, 0.0)
    while never.wait(timeout: .now() + Self.step) == .timedOut {
      let (current, names) = state.withLock { ($0.changes, $0.running.values.sorted()) }
      guard current == changes, !names.isEmpty else {
        (changes, silence, start) = (current, 0, processorTime())
        continue
      }
      silence += Self.step
      let used = processorTime() - start
      let isIdle = used < silence / 20
      guard isIdle && silence >= 60 || used >= 300 || silence >= 600 else {
        if silence == 60 {
          show(names, "WAITS: for a minute, no test has ended while this one runs: ")
        }
        continue
      }
      show(names, "HANGS: ")
      showThreads()
      flush()
      _exit(Self.exitStatus)
    }
  }

  private func show(_ names: [String], _ reason: String) {
    let lines = names.map { "\(reason)\($0)\n" }.joined()
    FileHandle.standardError.write(Data(lines.utf8))
  }

  /// Writes what was printed, unless a thread that reads the pipe of a child is waited for.
  private func flush() {
    let end = DispatchSemaphore(value: 0)
    Thread.detachNewThread {
      fflush(nil)
      end.signal()
    }
    _ = end.wait(timeout: .now() + 1)
  }

  /// Prints the load of the machine, and where the threads of the process and of its children are.
  private func showThreads() {
    #if os(Linux)
    // A thread of a pool that waits for work says nothing.
    let script = #"""
      {
        grep -H . /proc/loadavg /proc/pressure/*
        ps -eo pid,ppid,stat,etimes,cputimes,rss,args --sort=-cputimes | cut -c 1-120 | head -n 16
        for process in $PPID $(pgrep -P $PPID | grep -vx $$); do
          echo "Process $process"
          timeout --kill-after=5 60 gdb -p $process -batch -ex 'thread apply all backtrace 12' 2>/dev/null |
            grep -E '^(Thread|#)' | cut -c 1-160 | awk '
              function show() { if (text != "" && !isIdle) printf "%s", text; text = ""; isIdle = 0 }
              /^Thread/ { show() }
              /_dispatch_(semaphore_wait_slow|event_loop_drain|sigsuspend)/ { isIdle = 1 }
              { text = text $0 "\n" }
              END { show() }'
        done
      } 2>/dev/null | sed 's/^/WAITS: /' >&2
      """#
    system(script)
    #endif
  }

  /// The seconds for which the process has used a processor.
  private func processorTime() -> Double {
    var time = timespec()
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
    return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
  }
}
