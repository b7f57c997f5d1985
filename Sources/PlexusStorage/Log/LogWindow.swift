/// A buffered part of a file that moves as the file is read.
struct LogWindow {
  /// The size of the file.
  let size: Int
  private let read: (_ offset: Int, _ count: Int) throws -> [UInt8]
  private var start = 0
  private var content: [UInt8] = []

  /// Creates a window at the beginning of a file.
  ///
  /// - Parameters:
  ///   - size: The size of the file.
  ///   - read: A closure that reads bytes of the file.
  init(size: Int, read: @escaping (_ offset: Int, _ count: Int) throws -> [UInt8]) {
    self.size = size
    self.read = read
  }

  /// Returns bytes of the file, or fewer if it has been truncated.
  ///
  /// - Precondition: The range is within ``size``.
  mutating func bytes(at offset: Int, count: Int) throws -> ArraySlice<UInt8> {
    if offset < start || offset + count > start + content.count {
      content = try read(offset, min(max(count, 1 << 18), size - offset))
      start = offset
    }
    return content[(offset - start)...].prefix(count)
  }
}
