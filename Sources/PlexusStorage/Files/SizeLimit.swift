/// The sizes of the files in a folder, and the choice of files to evict under a limit.
struct SizeLimit {
  /// A file in the folder.
  struct File {
    let name: String
    let size: Int
    let storedAt: Duration
    /// The time of the last status change, set by the system clock.
    let changed: Duration
  }

  private let limit: Int64
  private let now: Duration
  /// The files, oldest last.
  private var files: [File]
  private var sizes: [String: Int]
  private var total: Int64

  /// Creates the limit for the files of a folder.
  ///
  /// - Parameters:
  ///   - limit: The maximum total size.
  ///   - files: The existing files.
  ///   - now: The current wall-clock time. A file with a later time counts as the oldest, so that a wrong
  ///     clock cannot keep it forever.
  init(limit: Int, files: [File], now: Duration) {
    self.limit = Int64(limit)
    self.now = now
    self.files = files.sorted { Self.order(of: $0, at: now) > Self.order(of: $1, at: now) }
    sizes = Dictionary(files.map { ($0.name, $0.size) }) { first, _ in first }
    total = files.reduce(0) { $0 + Int64($1.size) }
  }

  /// Returns the files to evict before a file is written, oldest first.
  ///
  /// - Parameters:
  ///   - size: The size of the new file.
  ///   - name: Its name. An existing file of that name is replaced and not returned.
  /// - Returns: The names of the files to evict.
  func victims(for size: Int, replacing name: String) -> [String] {
    var excess = total - Int64(sizes[name] ?? 0) + Int64(size) - limit
    var victims: [String] = []
    for file in files.reversed() where file.name != name {
      guard excess > 0 else { break }
      excess -= Int64(file.size)
      victims.append(file.name)
    }
    return victims
  }

  /// Accounts for a removed file.
  mutating func remove(_ name: String) {
    guard let size = sizes.removeValue(forKey: name) else { return }
    total -= Int64(size)
    if let index = files.lastIndex(where: { $0.name == name }) { files.remove(at: index) }
  }

  /// Accounts for a written file.
  mutating func insert(_ name: String, size: Int, storedAt: Duration) {
    remove(name)
    let file = File(name: name, size: size, storedAt: storedAt, changed: now)
    let order = Self.order(of: file, at: now)
    let index = files.lastIndex { Self.order(of: $0, at: now) > order }
    files.insert(file, at: index.map { $0 + 1 } ?? 0)
    sizes[name] = size
    total += Int64(size)
  }

  private static func order(of file: File, at now: Duration) -> (Duration, Duration, String) {
    let isFromTheFuture = file.storedAt > now + .seconds(60)
    return (isFromTheFuture ? .seconds(Int64.min) : file.storedAt, file.changed, file.name)
  }
}
