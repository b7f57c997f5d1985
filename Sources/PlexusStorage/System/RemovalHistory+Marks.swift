internal import Plexus
internal import PlexusSupport

/// The refreshes and the clears by tag of a folder or a log, by which its entries are judged.
struct StoredMarks: Sendable {
  /// The kind and the subject of a mark.
  struct Subject: Hashable, Sendable {
    enum Kind: UInt32, Sendable {
      case refreshedKey = 1
      case refreshedPrefix = 2
      case refreshedTag = 3
      case clearedTag = 4
      /// A clear of entries with any tag.
      case clearedTags = 5
    }

    let kind: Kind
    /// The length of the prefix.
    var count = 0
    var digest = ""

    static let everything = Subject(.refreshedPrefix, "")
    static let everyTag = Subject(kind: .clearedTags)

    private init(kind: Kind) { self.kind = kind }

    init(_ kind: Kind, _ text: String) {
      self.kind = kind
      if kind == .refreshedPrefix { count = text.utf8.count }
      digest = PlexusStorage.digest(of: text.utf8)
    }

    init?(kind: UInt32, count: Int, digest: String) {
      guard let kind = Kind(rawValue: kind) else { return nil }
      self.kind = kind
      self.count = count
      self.digest = digest
    }

    init(_ mark: CacheMark) {
      switch mark {
      case .refreshedKey(let key): self.init(.refreshedKey, key.canonicalSpelling)
      case .refreshedPrefix(let prefix): self.init(.refreshedPrefix, prefix.canonicalSpelling)
      case .refreshedTag(let tag, let prefix): self.init(.refreshedTag, Self.text(tag, prefix))
      case .clearedTag(let tag, let prefix): self.init(.clearedTag, Self.text(tag, prefix))
      }
    }

    static func text(_ tag: CacheTag, _ prefix: String) -> String {
      "\(prefix.canonicalSpelling)\0\(tag.name.canonicalSpelling)"
    }
  }

  /// The start of a fetch, as it is stored with an entry.
  struct Start: Hashable, Sendable {
    var epoch: UInt64
    var marks: UInt64
  }

  /// The largest number of marks; the older half of more is replaced by marks of everything.
  static var limit: Int { 1024 }

  var epoch: UInt64 = 0
  /// The number of marks so far.
  private(set) var count: UInt64 = 0
  /// The latest number of each mark.
  private(set) var numbers: [Subject: UInt64] = [:]
  private var kinds: Set<Subject.Kind> = []

  init(epoch: UInt64 = 0, count: UInt64 = 0, numbers: [Subject: UInt64] = [:]) {
    self.epoch = epoch
    self.count = count
    self.numbers = numbers
    kinds = Set(numbers.keys.map(\.kind))
  }

  /// Adds a mark.
  mutating func note(_ subject: Subject) {
    count += 1
    numbers[subject] = count
    kinds.insert(subject.kind)
    if numbers.count > Self.limit { fold() }
  }

  private mutating func fold() {
    let sorted = numbers.sorted { $0.value < $1.value }
    for (subject, number) in sorted.prefix(sorted.count / 2) {
      numbers[subject] = nil
      let isClear = subject.kind == .clearedTag || subject.kind == .clearedTags
      let all = isClear ? Subject.everyTag : .everything
      numbers[all] = max(numbers[all] ?? 0, number)
      kinds.insert(all.kind)
    }
  }

  /// Returns whether an entry has changed at its origin, and whether it was cleared by tag, since its fetch began.
  func judge(
    _ key: String,
    tags: [CacheTag],
    since start: Start?
  ) -> (isOutdated: Bool, isCleared: Bool) {
    guard count > 0 else { return (false, false) }
    let first = start?.epoch == epoch ? start?.marks ?? 0 : 0
    guard first < count else { return (false, false) }
    let prefix = CacheMark.prefix(ofName: key)
    /// Returns whether there is such a mark since the start.
    func has(_ subject: Subject) -> Bool { (numbers[subject] ?? 0) > first }
    func hasTag(_ kind: Subject.Kind) -> Bool {
      kinds.contains(kind) && tags.contains { has(Subject(kind, Subject.text($0, prefix))) }
    }
    let isCleared = hasTag(.clearedTag) || !tags.isEmpty && has(.everyTag)
    let isOutdated =
      has(.everything)
      || kinds.contains(.refreshedKey) && has(Subject(.refreshedKey, key))
      || !prefix.isEmpty && has(Subject(.refreshedPrefix, prefix)) || hasTag(.refreshedTag)
    return (isOutdated, isCleared)
  }
}

// MARK: - The tables

// Two tables are written in turn, so that one of them is always complete:
//
// | bytes | content |
// |---|---|
// | 8, 8 | the number of marks, and its complement |
// | 8, 8 | the number of records, and their checksum |
// | 56 for each mark | its latest number, kind, length and digest of its subject, checksum |

extension RemovalHistory {
  private static var tableOffset: Int { headerCount + Int(capacity) * recordCount }
  private static var tableSize: Int { 32 + (StoredMarks.limit + 2) * recordCount }

  private enum Table {
    case missing
    case damaged
    case present(place: Int, count: UInt64, records: Int, checksum: UInt64)
  }

  /// Records marks.
  ///
  /// - Parameters:
  ///   - marks: The marks.
  ///   - isDurable: Whether they must survive a power failure.
  /// - Returns: The generation after the last one.
  /// - Throws: The error of the file system.
  func note(_ marks: [CacheMark], isDurable: Bool) async throws -> CacheGeneration {
    let file = try await lock(.exclusive)
    defer { fileSystem.unlock(file.descriptor) }
    var header = try header(of: file)
    var stored = try header.flatMap { try self.marks(in: file, $0) }
    if stored == nil {
      // Everything before a damaged table counts as older than the marks.
      let new = try newHeader(of: file)
      try write(new, to: file)
      header = new
      stored = try self.marks(in: file, new) ?? StoredMarks(epoch: new.epoch)
    }
    guard let header, var stored else { throw StorageError.locked(path: file.descriptor.path) }
    for mark in marks { stored.note(StoredMarks.Subject(mark)) }
    try write(stored, to: file)
    if isDurable { try fileSystem.synchronize(file.descriptor) }
    var generation = header.generation
    generation.marks = stored.count
    return generation
  }

  /// Returns the marks so far.
  func marks() throws -> StoredMarks {
    guard let file = try find() else { return StoredMarks() }
    guard let header = try header(of: file), let marks = try marks(in: file, header) else {
      if try isEmpty(file) { return StoredMarks() }
      // Unreadable marks count as marks of everything.
      var lost = StoredMarks()
      lost.note(.everything)
      lost.note(.everyTag)
      return lost
    }
    return marks
  }

  /// The number of marks so far; `nil` if it is unreadable.
  func markCount(in file: OpenLog) throws -> UInt64? {
    switch try table(of: file) {
    case .missing: 0
    case .damaged: nil
    case .present(_, let count, _, _): count
    }
  }

  /// Returns the keys of entries with a tag that was cleared since their generations.
  func cleared(
    _ candidates: [Candidate],
    in file: OpenLog,
    _ header: Header
  ) throws -> Set<String> {
    let tagged = candidates.filter { !$0.tags.isEmpty }
    guard !tagged.isEmpty else { return [] }
    guard let marks = try marks(in: file, header) else { return Set(tagged.map(\.key)) }
    let cleared = tagged.filter { candidate in
      let generation = candidate.generation
      let start = StoredMarks.Start(epoch: generation.epoch, marks: generation.marks)
      return marks.judge(candidate.key, tags: candidate.tags, since: start).isCleared
    }
    return Set(cleared.map(\.key))
  }

  /// Returns the marks in a file; `nil` if they are unreadable.
  private func marks(in file: OpenLog, _ header: Header) throws -> StoredMarks? {
    // A table is replaced while it is read only if two others are written meanwhile.
    for _ in 0..<10 {
      switch try table(of: file) {
      case .missing:
        return StoredMarks(epoch: header.epoch)
      case .damaged:
        return nil
      case .present(let place, let count, let records, let checksum):
        if let known = knownMarks.withLock({ $0 }), known.epoch == header.epoch,
          known.count == count
        {
          return known
        }
        let bytes = try fileSystem.read(
          file.descriptor,
          at: place + 32,
          count: records * Self.recordCount
        )
        guard UInt64(CRC32C.checksum(bytes)) == checksum else { continue }
        let marks = Self.decode(bytes, epoch: header.epoch, count: count)
        let old = knownMarks.withLock { known in
          let old = known
          known = marks
          return old
        }
        withExtendedLifetime(old) {}
        return marks
      }
    }
    return nil
  }

  private static func decode(_ bytes: [UInt8], epoch: UInt64, count: UInt64) -> StoredMarks {
    var numbers: [StoredMarks.Subject: UInt64] = [:]
    for start in stride(from: 0, to: bytes.count, by: recordCount) {
      let word = number(bytes, start + 8)
      let digest = String(decoding: bytes[start + 16..<start + 48], as: UTF8.self)
      let subject = StoredMarks.Subject(
        kind: UInt32(truncatingIfNeeded: word >> 32),
        count: Int(word & 0x7fff_ffff),
        digest: digest.utf8.first == 0 ? "" : digest
      )
      if let subject { numbers[subject] = number(bytes, start) }
    }
    return StoredMarks(epoch: epoch, count: count, numbers: numbers)
  }

  /// Returns the newest complete table.
  private func table(of file: OpenLog) throws -> Table {
    var newest: Table?
    var latest: UInt64 = 0
    var isDamaged = false
    for place in [Self.tableOffset, Self.tableOffset + Self.tableSize] {
      let bytes = try fileSystem.read(file.descriptor, at: place, count: 32)
      guard bytes.count == 32, bytes.contains(where: { $0 != 0 }) else { continue }
      let count = Self.number(bytes, 0)
      let records = Self.number(bytes, 16)
      guard Self.number(bytes, 8) == ~count, records <= UInt64(StoredMarks.limit + 2) else {
        isDamaged = true
        continue
      }
      guard count > latest else { continue }
      latest = count
      newest = .present(
        place: place,
        count: count,
        records: Int(records),
        checksum: Self.number(bytes, 24)
      )
    }
    return newest ?? (isDamaged ? .damaged : .missing)
  }

  private func write(_ marks: StoredMarks, to file: OpenLog) throws {
    var place = Self.tableOffset
    if case .present(let newest, _, _, _) = try table(of: file), newest == place {
      place += Self.tableSize
    }
    var bytes: [UInt8] = []
    for (subject, number) in marks.numbers {
      bytes += Self.bytes(number)
      bytes += Self.bytes(UInt64(subject.kind.rawValue) << 32 | UInt64(subject.count))
      bytes +=
        subject.digest.isEmpty ? [UInt8](repeating: 0, count: 32) : Array(subject.digest.utf8)
      bytes += Self.bytes(0)
    }
    let words = [marks.count, ~marks.count, UInt64(marks.numbers.count)]
    try fileSystem.write(bytes, to: file.descriptor, at: place + 32)
    let start = words.flatMap(Self.bytes) + Self.bytes(UInt64(CRC32C.checksum(bytes)))
    try fileSystem.write(start, to: file.descriptor, at: place)
  }

  /// Marks everything, because the marks of a damaged file are lost.
  func writeLostMarks(to file: OpenLog) throws {
    var last: UInt64 = 0
    if case .present(_, let count, _, _) = try table(of: file) { last = count }
    var marks = StoredMarks(count: last)
    marks.note(.everything)
    marks.note(.everyTag)
    knownMarks.withLock { $0 = nil }
    try write(marks, to: file)
  }
}
