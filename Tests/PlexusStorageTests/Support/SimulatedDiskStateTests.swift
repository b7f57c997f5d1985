import Plexus
import TestSupport
import Testing

@testable import PlexusStorage

/// A file system in memory that fails or stops at a chosen call, and loses unsynchronized data in a crash.
final class SimulatedDisk: FileSystem {
  /// A fault at a call.
  enum Trouble: Sendable, Hashable {
    /// The call of this number, counted from 1, fails with this code.
    case fails(at: Int, code: Int32)
    /// From the call of this number on, calls have no effect.
    case stops(at: Int)
    /// Every call fails with this code.
    case failsAlways(code: Int32)
  }

  /// The content of the disk after a crash that was not synchronized before.
  enum Survival: CaseIterable {
    case everything, nothing, namesOnly, contentsOnly
  }

  struct Stopped: Error {}

  private struct Inode {
    var content: [UInt8] = []
    var durable: [UInt8] = []
    var modified = Duration.zero
    var changed = Duration.zero

    mutating func synchronize() { durable = content }

    mutating func forget() { content = durable }

    mutating func cut(to length: Int) { content = Array(content.prefix(length)) }
  }

  private struct State {
    var inodes: [UInt64: Inode] = [:]
    var names: [String: UInt64] = [:]
    var durableNames: [String: UInt64] = [:]
    var folders: Set<String> = ["/"]
    var durableFolders: Set<String> = ["/"]
    var open: [Int32: (inode: UInt64?, folder: String?)] = [:]
    var locks: [String: [Int32: LockKind]] = [:]
    var last: UInt64 = 0
    var calls = 0
    var trouble: Trouble?
    var capacity = Int.max
    var now = Duration.seconds(1_800_000_000)
    var pauseAction: (@Sendable (SimulatedDisk) -> Void)?
    var renameAction: (@Sendable (SimulatedDisk) -> Void)?
  }

  private let state = Guarded(State())

  // MARK: - For tests

  var callCount: Int { state.withLock { $0.calls } }
  var openCount: Int { state.withLock { $0.open.count } }
  var byteCount: Int {
    state.withLock { state in
      state.names.values.reduce(0) { $0 + (state.inodes[$1]?.content.count ?? 0) }
    }
  }
  var paths: [String] { state.withLock { $0.names.keys.sorted() } }

  /// Sets the number of bytes that all files can have together before the disk is full.
  func setCapacity(_ bytes: Int) { state.withLock { $0.capacity = bytes } }

  /// Calls the closure at the next wait for a lock.
  func whenPaused(_ action: @escaping @Sendable (SimulatedDisk) -> Void) {
    state.withLock { $0.pauseAction = action }
  }

  /// Calls the closure when the next file has got its new name, before the call that renames it returns.
  func whenRenamed(_ action: @escaping @Sendable (SimulatedDisk) -> Void) {
    state.withLock { $0.renameAction = action }
  }

  /// Injects a fault; calls are counted from here on.
  func prepare(_ trouble: Trouble?) {
    state.withLock {
      $0.calls = 0
      $0.trouble = trouble
    }
  }

  /// Restarts the computer.
  func crash(_ survival: Survival) {
    state.withLock { state in
      state.open = [:]
      state.locks = [:]
      state.trouble = nil
      if survival == .nothing || survival == .contentsOnly {
        state.names = state.durableNames
        state.folders = state.durableFolders
      }
      if survival == .nothing || survival == .namesOnly {
        for number in state.inodes.keys {
          state.inodes[number]?.forget()
        }
      }
      state.names = state.names.filter { state.folders.contains(Self.folder(of: $0.key)) }
      state.durableNames = state.names
      state.durableFolders = state.folders
      for number in state.inodes.keys {
        state.inodes[number]?.synchronize()
      }
    }
  }

  /// Ends the processes that use the disk, but not the computer.
  func kill() {
    state.withLock { state in
      state.open = [:]
      state.locks = [:]
      state.trouble = nil
    }
  }

  /// Puts a file there, as another process would.
  func put(_ bytes: [UInt8], at path: String) {
    state.withLock { state in
      state.last += 1
      state.inodes[state.last] = Inode(content: bytes, durable: bytes, changed: state.now)
      state.names[path] = state.last
      state.durableNames[path] = state.last
    }
  }

  func content(at path: String) -> [UInt8]? {
    state.withLock { state in state.names[path].flatMap { state.inodes[$0]?.content } }
  }

  // MARK: - FileSystem

  func makeFolder(_ path: String) throws -> Bool {
    try call("mkdir", path) { $0.folders.insert(path).inserted }
  }

  func open(_ path: String, _ mode: OpenMode) throws -> Descriptor? {
    try call("open", path) { state in
      let descriptor = Descriptor(number: Int32(state.last + 1), path: path)
      if mode == .folder {
        guard state.folders.contains(path) else { return nil }
        state.last += 1
        state.open[descriptor.number] = (nil, path)
        return descriptor
      }
      if state.names[path] == nil {
        guard mode != .reading else { return nil }
        guard state.folders.contains(Self.folder(of: path)) else { throw vanished(path) }
        state.inodes[state.last + 1] = Inode(changed: state.now)
        state.names[path] = state.last + 1
      } else if mode == .creating {
        throw StorageError.system(operation: "open", path: path, code: 17)
      }
      state.last += 1
      state.open[descriptor.number] = (state.names[path], nil)
      return descriptor
    }
  }

  func close(_ descriptor: Descriptor) {
    state.withLock {
      Self.unlock(descriptor, &$0)
      $0.open[descriptor.number] = nil
    }
  }

  func status(of descriptor: Descriptor) throws -> FileStatus {
    try call("fstat", descriptor.path) { try Self.status(Self.inode(descriptor, $0), $0) }
  }

  func status(atPath path: String) throws -> FileStatus? {
    try call("lstat", path) { state in
      if let number = state.names[path] { return Self.status(number, state) }
      guard state.folders.contains(path) else { return nil }
      return FileStatus(
        identity: .init(device: 0, number: 0),
        isRegular: false,
        size: 0,
        modified: .zero,
        changed: .zero
      )
    }
  }

  func read(_ descriptor: Descriptor, at offset: Int, count: Int) throws -> [UInt8] {
    try call("pread", descriptor.path) { state in
      Array(
        try state.inodes[Self.inode(descriptor, state)]?.content.dropFirst(offset).prefix(count)
          ?? []
      )
    }
  }

  func write(_ bytes: [UInt8], to descriptor: Descriptor, at offset: Int) throws {
    do {
      try call("pwrite", descriptor.path) { try Self.write(bytes, descriptor, offset, &$0) }
    } catch {
      // The effect of a write that fails, or is interrupted by a crash.
      state.withLock { state in
        guard case .stops(let stop)? = state.trouble, state.calls > stop else {
          try? Self.write(Array(bytes.prefix(bytes.count / 2)), descriptor, offset, &state)
          return
        }
      }
      throw error
    }
  }

  func setLength(of descriptor: Descriptor, to length: Int) throws {
    try call("ftruncate", descriptor.path) { state in
      let number = try Self.inode(descriptor, state)
      state.inodes[number]?.cut(to: length)
    }
  }

  func setModificationTime(of descriptor: Descriptor, to time: Duration) throws {
    try call("futimens", descriptor.path) { state in
      state.inodes[try Self.inode(descriptor, state)]?.modified = time
    }
  }

  func synchronize(_ descriptor: Descriptor) throws {
    try call("fsync", descriptor.path) { state in
      guard let open = state.open[descriptor.number] else { throw Stopped() }
      if let number = open.inode {
        state.inodes[number]?.synchronize()
      }
      guard let folder = open.folder else { return }
      let isInside = { (path: String) in Self.folder(of: path) == folder }
      state.durableNames = state.durableNames.filter { !isInside($0.key) }
        .merging(state.names.filter { isInside($0.key) }) { _, new in new }
      state.durableFolders.formUnion(state.folders.filter(isInside))
    }
  }

  func rename(_ path: String, to newPath: String) throws {
    try call("rename", newPath) { state in
      guard let number = state.names.removeValue(forKey: path) else { throw vanished(path) }
      state.names[newPath] = number
    }
    let action = state.withLock { $0.renameAction.take() }
    action?(self)
  }

  func remove(_ path: String) throws -> Bool {
    try call("unlink", path) { $0.names.removeValue(forKey: path) != nil }
  }

  func names(inFolder path: String) throws -> [String] {
    try call("opendir", path) { state in
      state.names.keys.filter { Self.folder(of: $0) == path }.map {
        String($0.dropFirst(path.count + 1))
      }
    }
  }

  func tryLock(_ descriptor: Descriptor, _ kind: LockKind) throws -> Bool {
    try call("flock", descriptor.path) { state in
      let place = Self.place(descriptor, state)
      let others = (state.locks[place] ?? [:]).filter { $0.key != descriptor.number }
      guard others.isEmpty || kind == .shared && !others.values.contains(.exclusive) else {
        return false
      }
      state.locks[place, default: [:]][descriptor.number] = kind
      return true
    }
  }

  func unlock(_ descriptor: Descriptor) {
    state.withLock { Self.unlock(descriptor, &$0) }
  }

  func pause() {
    let action = state.withLock { $0.pauseAction.take() }
    action?(self)
  }

  func now() -> Duration { state.withLock { $0.now } }

  // MARK: - Implementation

  private func call<Result>(
    _ operation: String,
    _ path: String,
    _ body: (inout State) throws -> Result
  ) throws -> Result {
    try state.withLock { state in
      state.calls += 1
      switch state.trouble {
      case .fails(state.calls, let code)?, .failsAlways(let code)?:
        throw StorageError.system(operation: operation, path: path, code: code)
      case .stops(let stop)? where state.calls >= stop: throw Stopped()
      default: return try body(&state)
      }
    }
  }

  private static func write(
    _ bytes: [UInt8],
    _ descriptor: Descriptor,
    _ offset: Int,
    _ state: inout State
  ) throws {
    let number = try inode(descriptor, state)
    guard var content = state.inodes[number]?.content else { return }
    let total = state.names.values.reduce(0) { $0 + (state.inodes[$1]?.content.count ?? 0) }
    let growth = max(0, offset + bytes.count - content.count)
    guard total + growth <= state.capacity else {
      throw StorageError.system(operation: "pwrite", path: descriptor.path, code: 28)
    }
    content += repeatElement(0, count: max(0, offset + bytes.count - content.count))
    content.replaceSubrange(offset..<offset + bytes.count, with: bytes)
    state.inodes[number]?.content = content
  }

  private static func status(_ number: UInt64, _ state: State) -> FileStatus {
    let inode = state.inodes[number] ?? Inode()
    return FileStatus(
      identity: .init(device: 0, number: number),
      isRegular: true,
      size: inode.content.count,
      modified: inode.modified,
      changed: inode.changed
    )
  }

  private static func inode(_ descriptor: Descriptor, _ state: State) throws -> UInt64 {
    guard let number = state.open[descriptor.number]?.inode else { throw Stopped() }
    return number
  }

  private static func place(_ descriptor: Descriptor, _ state: State) -> String {
    let open = state.open[descriptor.number]
    return open?.folder ?? "inode \(open?.inode ?? 0)"
  }

  private static func unlock(_ descriptor: Descriptor, _ state: inout State) {
    state.locks[place(descriptor, state)]?[descriptor.number] = nil
  }

  private static func folder(of path: String) -> String {
    let end = path.lastIndex(of: "/") ?? path.startIndex
    return end == path.startIndex ? "/" : String(path[..<end])
  }
}

extension SimulatedDisk {
  /// Opens the log, or the files, of a folder.
  func openCacher(isLog: Bool) throws -> any Cacher<Person> {
    isLog
      ? try JSONLogCacher<Person>(path: "/x", byteLimit: nil, schema: nil, fileSystem: self)
      : JSONFileCacher<Person>(path: "/x", byteLimit: nil, schema: nil, fileSystem: self)
  }
}

@Suite(.fewAtOnce) struct `A simulated disk` {
  let disk = SimulatedDisk()

  private func write(_ text: String, to path: String) throws -> Descriptor {
    let descriptor = try #require(try disk.open(path, .updating))
    try disk.write(Array(text.utf8), to: descriptor, at: 0)
    return descriptor
  }

  @Test(arguments: SimulatedDisk.Survival.allCases)
  func `a simulated disk keeps in a crash what was synchronized`(
    survival: SimulatedDisk.Survival
  ) throws {
    let file = try write("kept", to: "/a")
    try disk.synchronize(file)
    try disk.synchronizeFolder("/")
    disk.crash(survival)
    #expect(disk.content(at: "/a") == Array("kept".utf8))
  }

  @Test func `a simulated disk loses in a crash what was not synchronized`() throws {
    _ = try write("lost", to: "/a")
    try disk.synchronizeFolder("/")
    _ = try write("lost", to: "/b")
    disk.crash(.nothing)
    #expect(disk.content(at: "/a") == [])
    #expect(disk.content(at: "/b") == nil)
  }

  @Test func `a simulated disk stops in the middle of a write`() throws {
    let file = try write("", to: "/a")
    disk.prepare(.stops(at: 1))
    #expect(throws: SimulatedDisk.Stopped.self) { try disk.write([1, 2, 3, 4], to: file, at: 0) }
    #expect(throws: SimulatedDisk.Stopped.self) { try disk.write([5, 6, 7, 8], to: file, at: 0) }
    #expect(disk.content(at: "/a") == [1, 2])
  }

  @Test func `a simulated disk locks as the system does`() throws {
    let first = try write("", to: "/a")
    let second = try write("", to: "/a")
    #expect(try disk.tryLock(first, .shared))
    #expect(try disk.tryLock(second, .shared))
    #expect(try !disk.tryLock(second, .exclusive))
    disk.close(first)
    #expect(try disk.tryLock(second, .exclusive))
  }
}
