import Foundation
import PlexusSupport
import TestSupport

/// The commands that a server executes, those of scripts included, by the server's `MONITOR`.
final class RedisMonitor: Sendable {
  private let server: RedisServer
  private let descriptor: Int32
  private let thread: LoopThread
  private let lines: Log<String>

  /// Connects, and waits until the server reports its commands.
  init(_ server: RedisServer) async throws {
    await RedisShell.waitUntilReady(server)
    let descriptor = try RedisShell.connect(to: server)
    try RedisShell.send("MONITOR", to: descriptor)
    let lines = Log<String>()
    (self.server, self.descriptor, self.lines) = (server, descriptor, lines)
    thread = try LoopThread {
      var rest: [UInt8] = []
      var buffer = [UInt8](repeating: 0, count: 4096)
      while true {
        let count = read(descriptor, &buffer, buffer.count)
        guard count > 0 else { return }
        rest += buffer[..<count]
        while let end = rest.firstIndex(of: UInt8(ascii: "\n")) {
          lines.append(String(decoding: rest[..<end], as: UTF8.self))
          rest.removeFirst(end + 1)
        }
      }
    }
    await lines.first(1)
  }

  deinit {
    shutdown(descriptor, Int32(SHUT_RDWR))
    thread.join()
    close(descriptor)
  }

  /// Returns how many of the commands so far have a line with all of some parts.
  func count(with parts: String..., on server: RedisServer) async throws -> Int {
    let mark = UUID().uuidString
    _ = try RedisShell.run("ECHO \(mark)", on: server)
    // Nearly the last line: searching all lines again for each further one would take minutes.
    await lines.wait { lines in lines.suffix(64).contains { $0.contains(mark) } }
    return lines.entries.count { line in parts.allSatisfy { line.contains($0) } }
  }

  /// Waits until the server has executed a number of commands whose line has all of some parts.
  func commands(_ count: Int, with parts: String...) async {
    let found = Guarded(0)
    await wait { line in
      guard parts.allSatisfy({ line.contains($0) }) else { return false }
      return found.withLock { found in
        found += 1
        return found >= count
      }
    }
  }

  /// Waits until a number of processes have acknowledged the epoch of a space: later heartbeats announce nothing.
  func acknowledgements(_ count: Int, of space: String = "values") async {
    await Failover.poll { [server] in
      let reply = (try? RedisShell.reply("HVALS {\(space)}:2:acks", on: server)) ?? ""
      return reply.matches(of: /\S+ \d+-\S+ \d+\r\n/).count >= count
    }
  }

  /// Waits until a number of processes have looked for a key by a script.
  ///
  /// The number of looks says less: a process can look twice.
  func looks(for key: String, by count: Int) async {
    let fetchKey = "\"{values}:2:f:1:values/\(key)\" "
    await processes(count) { line in
      guard line.contains("\"EVAL"), let arguments = line.firstRange(of: fetchKey)?.upperBound
      else { return nil }
      // The holder of a lease is its name and the time of the lease.
      return line[arguments...].firstMatch(of: /"([a-z0-9]+\.\d+\/\d+)"/)?.1
    }
  }

  /// Waits for the lines of a number of different processes.
  private func processes(
    _ count: Int,
    _ process: @escaping @Sendable (String) -> Substring?
  ) async {
    let found = Guarded<Set<Substring>>([])
    await wait { line in
      guard let process = process(line) else { return false }
      return found.withLock { found in
        found.insert(process)
        return found.count >= count
      }
    }
  }

  /// Waits until a condition is satisfied, which gets each line once.
  ///
  /// Otherwise, a busy server would send lines faster than all of those before them are searched.
  private func wait(until isSatisfied: @escaping @Sendable (String) -> Bool) async {
    let seen = Guarded(0)
    await lines.wait { lines in
      seen.withLock { seen in
        while seen < lines.count {
          seen += 1
          if isSatisfied(lines[seen - 1]) { return true }
        }
        return false
      }
    }
  }
}
