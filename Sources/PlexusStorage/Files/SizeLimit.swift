/// How much room the files of a folder leave under its limit, and who has to make more.
struct SizeLimit {
  /// A file as its folder lists it.
  struct File {
    let name: String
    let size: Int
    let storedAt: Duration
    /// The time at which the file was last changed, by the system's clock.
    let changed: Duration
  }

  private let limit: Int
  private let now: Duration
  /// The oldest file last.
  private var files: [File]
  private var sizes: [String: Int]
  private var total: Int

  /// Looks at files.
  ///
  /// - Parameters:
  ///   - limit: The number of bytes that they may have together.
  ///   - files: The files that there are.
  ///   - now: The wall clock's time. A file from the future counts as the oldest: a clock that was
  ///     once wrong must not make it stay for ever.
  init(limit: Int, files: [File], now: Duration) {
    self.limit = limit
    self.now = now
    self.files = files.sorted { Self.order(of: $0, at: now) > Self.order(of: $1, at: now) }
    sizes = Dictionary(files.map { ($0.name, $0.size) }) { first, _ in first }
    total = files.reduce(0) { $0 + $1.size }
  }

  /// Returns which files must go before a file is written, the oldest first.
  ///
  /// - Parameters:
  ///   - size: The size of the new file.
  ///   - name: Its name: a file that has it is replaced, and is none of those that go.
  /// - Returns: The names of those that must go.
  func victims(for size: Int, replacing name: String) -> [String] {
    var excess = total - (sizes[name] ?? 0) + size - limit
    var victims: [String] = []
    for file in files.reversed() where file.name != name {
      guard excess > 0 else { break }
      excess -= file.size
      victims.append(file.name)
    }
    return victims
  }

  /// A file was removed.
  mutating func remove(_ name: String) {
    guard let size = sizes.removeValue(forKey: name) else { return }
    total -= size
    if let index = files.lastIndex(where: { $0.name == name }) { files.remove(at: index) }
  }

  /// A file was written.
  mutating func insert(_ name: String, size: Int, storedAt: Duration) {
    remove(name)
    let file = File(name: name, size: size, storedAt: storedAt, changed: now)
    let order = Self.order(of: file, at: now)
    let index = files.lastIndex { Self.order(of: $0, at: now) > order }
    files.insert(file, at: index.map { $0 + 1 } ?? 0)
    sizes[name] = size
    total += size
  }

  private static func order(of file: File, at now: Duration) -> (Duration, Duration, String) {
    let isFromTheFuture = file.storedAt > now + .seconds(60)
    return (isFromTheFuture ? .seconds(Int64.min) : file.storedAt, file.changed, file.name)
  }
}
