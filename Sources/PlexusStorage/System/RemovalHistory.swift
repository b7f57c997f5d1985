internal import Plexus
internal import PlexusSupport

/// A record of the latest removals from a folder or a log, by all instances and processes.
///
/// A small file next to the entries contains a ring of the last removals in the order of their numbers. Each
/// removal is recorded here before it is carried out, and each write checks for removals since the entry's
/// generation. The file is not made durable, because no instance keeps values in memory across a power failure.
///
/// | bytes | content |
/// |---|---|
/// | 8, 8 | a marker, and the epoch, which is different for each file |
/// | 8, 8 | the number of removals, and its complement |
/// | 56 for each of the last removals | number, kind, length and digest of the key or prefix, checksum |
/// | two tables of marks, at fixed offsets | refreshes, and clears by tag: see `RemovalHistory+Marks.swift` |
///
/// An unreadable record counts as the removal of everything.
final class RemovalHistory: Sendable {
  /// A removal to be recorded.
  enum Removal: Hashable, Sendable {
    case everything
    case key(String)
    case prefix(String)
  }

  /// An entry to be written.
  struct Candidate: Sendable {
    let key: String
    let generation: CacheGeneration
    var tags: [CacheTag] = []
  }

  struct Header {
    let epoch: UInt64
    let number: UInt64

    var generation: CacheGeneration { CacheGeneration(epoch: epoch, number: number) }
  }

  /// The number of removals in the ring; an entry with an older generation is not written.
  static var capacity: UInt64 { 1024 }

  private static let marker: UInt64 = 0x31_7265_766F_6D65_72
  static let headerCount = 32
  static let recordCount = 56

  private let path: String
  private let folder: String
  let fileSystem: any FileSystem
  /// The marks that were read last.
  let knownMarks = Locked<StoredMarks?>(nil)
  /// The file that was found last, which may have been removed since.
  private let known = Locked<OpenLog?>(nil)
  /// The files that were found before, open although their folder may have vanished.
  private let former = Locked<[OpenLog]>([])

  init(path: String, folder: String, fileSystem: any FileSystem) {
    self.path = path
    self.folder = folder
    self.fileSystem = fileSystem
  }

  /// The number of removals so far, or 0 if there is no file.
  ///
  /// Reads the header with one system call once the file is open. A damaged file is replaced: otherwise nothing could
  /// be written until the next removal.
  var generation: CacheGeneration {
    do {
      guard let file = try find() else { return CacheGeneration() }
      guard let header = try header(of: file) ?? renewedHeader() else { return CacheGeneration() }
      var generation = header.generation
      generation.marks = try markCount(in: file) ?? 0
      return generation
    } catch {
      return CacheGeneration()
    }
  }

  // MARK: - Removing

  /// Records removals.
  func note(_ removals: some Collection<Removal>) async throws {
    guard !removals.isEmpty else { return }
    let file = try await lock(.exclusive)
    defer { fileSystem.unlock(file.descriptor) }
    let header = try header(of: file) ?? newHeader(of: file)
    // Only the last removals fit into the ring.
    let skipped = max(0, removals.count - Int(Self.capacity))
    var number = header.number + UInt64(skipped)
    var offset = Self.offset(of: number)
    var records: [UInt8] = []
    for removal in removals.dropFirst(skipped) {
      if Self.offset(of: number) < offset + records.count {
        try fileSystem.write(records, to: file.descriptor, at: offset)
        offset = Self.offset(of: number)
        records = []
      }
      records += Self.record(removal, number)
      number += 1
    }
    try fileSystem.write(records, to: file.descriptor, at: offset)
    try write(Header(epoch: header.epoch, number: number), to: file)
  }

  /// Records removals and then carries them out, even if recording fails.
  ///
  /// On a full disk, it carries them out first and then records them, because that frees space.
  ///
  /// - Parameters:
  ///   - removals: The removals.
  ///   - body: A closure that carries them out.
  /// - Throws: The error of recording or of the body.
  func noting(
    _ removals: some Collection<Removal>,
    _ body: () async throws -> Void
  ) async throws {
    do {
      try await note(removals)
    } catch let error as StorageError where error.isLackOfSpace {
      try await body()
      try? await note(removals)
      return
    } catch {
      try await body()
      throw error
    }
    try await body()
  }

  // MARK: - Writing

  /// Calls the body under a shared lock, so that no removal is recorded meanwhile.
  ///
  /// - Parameters:
  ///   - candidate: The entry that the body writes.
  ///   - body: A closure that writes the entry.
  /// - Returns: `false`, without calling the body, if the entry has been removed since its generation.
  /// - Throws: The error of the file system or of the body.
  func write(_ candidate: Candidate, _ body: () throws -> Void) async throws -> Bool {
    let file = try await lock(.shared)
    defer { fileSystem.unlock(file.descriptor) }
    guard try outdated([candidate], in: file).isEmpty else { return false }
    try body()
    return true
  }

  /// Returns the keys of the entries that have been removed since their generations.
  func outdated(_ candidates: [Candidate]) throws -> Set<String> {
    guard !candidates.isEmpty else { return [] }
    // Another process may have replaced the file.
    guard let file = try find() else { return lost(candidates) }
    return try outdated(candidates, in: file)
  }

  private func outdated(_ candidates: [Candidate], in file: OpenLog) throws -> Set<String> {
    guard let header = try header(of: file) else {
      return try isEmpty(file) ? lost(candidates) : Set(candidates.map(\.key))
    }
    let lost = try lost(candidates, besides: header.epoch)
      .union(cleared(candidates, in: file, header))
    /// Returns the number of the first removal after an entry's generation.
    func start(_ candidate: Candidate) -> UInt64 {
      candidate.generation.epoch == header.epoch ? candidate.generation.number : 0
    }
    let oldest = candidates.map(start).min() ?? header.number
    guard oldest < header.number else { return lost }
    let first = header.number - min(header.number, Self.capacity)
    let removals = try Removals(
      (max(oldest, first)..<header.number).map { number in
        let offset = Self.offset(of: number)
        let bytes = try fileSystem.read(file.descriptor, at: offset, count: Self.recordCount)
        return Self.noted(bytes, number)
      },
      from: max(oldest, first)
    )
    let removed = candidates.filter { candidate in
      let start = start(candidate)
      return start < first || removals.contains(candidate.key, since: start)
    }
    return lost.union(removed.map(\.key))
  }

  /// The keys of entries from the time of another file that were removed, or whose removals are no longer known.
  ///
  /// When a folder vanishes, its last removals can still be read from the open file.
  private func lost(_ candidates: [Candidate], besides epoch: UInt64 = 0) -> Set<String> {
    var lost = candidates.filter { $0.generation.epoch != 0 && $0.generation.epoch != epoch }
    guard !lost.isEmpty else { return [] }
    var removed: Set<String> = []
    for file in former.withLock({ $0 }) + (known.withLock { $0.map { [$0] } } ?? []) {
      guard let header = try? header(of: file), header.epoch != epoch else { continue }
      let known = lost.filter { $0.generation.epoch == header.epoch }
      lost.removeAll { $0.generation.epoch == header.epoch }
      let keys = Set(known.map(\.key))
      removed.formUnion(known.isEmpty ? [] : (try? outdated(known, in: file)) ?? keys)
    }
    return removed.union(lost.map(\.key))
  }

  /// The recorded removals, each with its last number.
  private struct Removals {
    private var everything: UInt64?
    private var keys: [String: UInt64] = [:]
    private var prefixes: [Int: [String: UInt64]] = [:]

    init(_ notes: [Noted], from first: UInt64) throws {
      for (number, note) in zip(first..., notes) {
        switch note {
        case .everything: everything = number
        case .key(let digest): keys[digest] = number
        case .prefix(let digest, let count): prefixes[count, default: [:]][digest] = number
        }
      }
    }

    func contains(_ key: String, since start: UInt64) -> Bool {
      if let everything, everything >= start { return true }
      if !keys.isEmpty, let number = keys[digest(of: key.utf8)], number >= start { return true }
      return prefixes.contains { count, digests in
        guard key.utf8.count >= count else { return false }
        return digests[digest(of: key.utf8.prefix(count))].map { $0 >= start } ?? false
      }
    }
  }

  // MARK: - The file

  /// Returns the file that currently has the name, if any.
  func find() throws -> OpenLog? {
    let status = try fileSystem.status(atPath: path)
    guard let status else { return nil }
    let known = known.withLock { $0 }
    if let known, known.identity == status.identity { return known }
    guard let descriptor = try fileSystem.open(path, .reading) else { return nil }
    let file = try OpenLog.adopt(descriptor, fileSystem: fileSystem)
    let old = self.known.withLock { known in
      let old = known
      known = file
      return old
    }
    if let old { remember(old) }
    return file
  }

  private func remember(_ file: OpenLog) {
    let dropped = former.withLock { files in
      files.append(file)
      return files.count > 4 ? files.removeFirst() : nil
    }
    withExtendedLifetime(dropped) {}
  }

  /// Opens or creates the file and locks it.
  func lock(_ kind: LockKind) async throws -> OpenLog {
    for _ in 0..<100 {
      let file = try OpenLog.open(path, folder: folder, fileSystem: fileSystem)
      try await fileSystem.lock(file.descriptor, kind)
      if try fileSystem.status(atPath: path)?.identity == file.identity { return file }
    }
    throw StorageError.locked(path: path)
  }

  func header(of file: OpenLog) throws -> Header? {
    let bytes = try fileSystem.read(file.descriptor, at: 0, count: Self.headerCount)
    guard bytes.count == Self.headerCount, Self.number(bytes, 0) == Self.marker else { return nil }
    let header = Header(epoch: Self.number(bytes, 8), number: Self.number(bytes, 16))
    // The complement guards against damage; counting cannot reach half of the range.
    return Self.number(bytes, 24) == ~header.number && header.number < .max / 2 ? header : nil
  }

  func write(_ header: Header, to file: OpenLog) throws {
    let words = [Self.marker, header.epoch, header.number, ~header.number]
    try fileSystem.write(words.flatMap(Self.bytes), to: file.descriptor, at: 0)
  }

  /// Returns the first header of a file.
  func newHeader(of file: OpenLog) throws -> Header {
    // The history of a damaged file is lost, so values from before it must not be written.
    let number = try isEmpty(file) ? 0 : Self.capacity + 1
    if number > 0 { try writeLostMarks(to: file) }
    return Header(epoch: .random(in: 1 ... .max), number: number)
  }

  /// Writes a new header to a damaged file, unless the file is locked.
  private func renewedHeader() throws -> Header? {
    let file = try OpenLog.open(path, folder: folder, fileSystem: fileSystem)
    guard try fileSystem.tryLock(file.descriptor, .exclusive) else { return nil }
    defer { fileSystem.unlock(file.descriptor) }
    if let header = try header(of: file) { return header }
    guard try !isEmpty(file) else { return nil }
    let header = try newHeader(of: file)
    try write(header, to: file)
    return header
  }

  func isEmpty(_ file: OpenLog) throws -> Bool {
    try fileSystem.status(of: file.descriptor).size == 0
  }

  /// A removal read from the file.
  private enum Noted {
    case everything
    case key(String)
    case prefix(String, count: Int)
  }

  static func offset(of number: UInt64) -> Int {
    headerCount + Int(number % capacity) * recordCount
  }

  private static func record(_ removal: Removal, _ number: UInt64) -> [UInt8] {
    let (kind, text): (UInt64, String) =
      switch removal {
      case .everything: (0, "")
      case .key(let key): (1, key)
      case .prefix(let prefix): (2, prefix)
      }
    var bytes = Self.bytes(number) + Self.bytes(kind << 32 | UInt64(text.utf8.count))
    bytes += digest(of: text.utf8).utf8
    return bytes + Self.bytes(UInt64(CRC32C.checksum(bytes)))
  }

  /// Decodes a removal; returns `.everything` if the record is unreadable.
  private static func noted(_ bytes: [UInt8], _ number: UInt64) -> Noted {
    guard bytes.count == recordCount, Self.number(bytes, 0) == number,
      Self.number(bytes, 48) == UInt64(CRC32C.checksum(bytes.prefix(48)))
    else { return .everything }
    let digest = String(decoding: bytes[16..<48], as: UTF8.self)
    let word = Self.number(bytes, 8)
    switch word >> 32 {
    case 1: return .key(digest)
    case 2: return .prefix(digest, count: Int(clamping: UInt32(truncatingIfNeeded: word)))
    default: return .everything
    }
  }

  static func bytes(_ number: UInt64) -> [UInt8] {
    (0..<8).map { UInt8(truncatingIfNeeded: number >> (8 * $0)) }
  }

  static func number(_ bytes: [UInt8], _ offset: Int) -> UInt64 {
    bytes[offset..<offset + 8].reversed().reduce(0) { $0 << 8 | UInt64($1) }
  }
}

/// Returns the first 128 bits of a text's SHA-256 digest, in hexadecimal.
func digest(of text: some Sequence<UInt8>) -> String {
  String(SHA256.hexadecimalDigest(text).prefix(32))
}
