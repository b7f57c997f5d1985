import Foundation
import TestSupport

@testable import PlexusStorage

/// The files of the system, whose folder is removed after chosen calls.
final class VanishingFolder: FileSystem {
  private struct State {
    var calls = 0
    var isVanishing: (@Sendable (_ call: Int, _ operation: String) -> Bool)?
    var last: Int?
  }

  private let base = POSIXFileSystem()
  private let path: String
  private let state = Guarded(State())

  init(_ path: String) {
    self.path = path
  }

  /// Counts calls from here on, and removes the folder after those for which the closure returns `true`.
  func vanish(at isVanishing: @escaping @Sendable (_ call: Int, _ operation: String) -> Bool) {
    state.withLock { $0 = State(isVanishing: isVanishing) }
  }

  /// Whether the folder was removed after the last call, or was not removed.
  var isOver: Bool { state.withLock { $0.last == nil || $0.last == $0.calls } }

  /// Whether the folder was removed.
  var hasVanished: Bool { state.withLock { $0.last != nil } }

  private func call<Result>(_ operation: String, _ body: () throws -> Result) rethrows -> Result {
    defer {
      let vanishes = state.withLock { state in
        state.calls += 1
        guard state.isVanishing?(state.calls, operation) == true else { return false }
        state.last = state.calls
        return true
      }
      if vanishes { try? FileManager.default.removeItem(atPath: path) }
    }
    return try body()
  }

  func makeFolder(_ path: String) throws -> Bool { try call("mkdir") { try base.makeFolder(path) } }

  func open(_ path: String, _ mode: OpenMode) throws -> Descriptor? {
    try call("open") { try base.open(path, mode) }
  }

  func close(_ descriptor: Descriptor) { base.close(descriptor) }

  func status(of descriptor: Descriptor) throws -> FileStatus {
    try call("fstat") { try base.status(of: descriptor) }
  }

  func status(atPath path: String) throws -> FileStatus? {
    try call("lstat") { try base.status(atPath: path) }
  }

  func read(_ descriptor: Descriptor, at offset: Int, count: Int) throws -> [UInt8] {
    try call("read") { try base.read(descriptor, at: offset, count: count) }
  }

  func write(_ bytes: [UInt8], to descriptor: Descriptor, at offset: Int) throws {
    try call("write") { try base.write(bytes, to: descriptor, at: offset) }
  }

  func setLength(of descriptor: Descriptor, to length: Int) throws {
    try call("truncate") { try base.setLength(of: descriptor, to: length) }
  }

  func setModificationTime(of descriptor: Descriptor, to time: Duration) throws {
    try call("utimes") { try base.setModificationTime(of: descriptor, to: time) }
  }

  func synchronize(_ descriptor: Descriptor) throws {
    try call(descriptor.path == path ? "fsync folder" : "fsync") {
      try base.synchronize(descriptor)
    }
  }

  func rename(_ path: String, to newPath: String) throws {
    try call("rename") { try base.rename(path, to: newPath) }
  }

  func remove(_ path: String) throws -> Bool { try call("unlink") { try base.remove(path) } }

  func names(inFolder path: String) throws -> [String] {
    try call("opendir") { try base.names(inFolder: path) }
  }

  func tryLock(_ descriptor: Descriptor, _ kind: LockKind) throws -> Bool {
    try call("flock") { try base.tryLock(descriptor, kind) }
  }

  func unlock(_ descriptor: Descriptor) { base.unlock(descriptor) }

  func pause() async { await base.pause() }

  func now() -> Duration { base.now() }
}
