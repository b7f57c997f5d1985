/// A part of a file in memory, which moves along as the file is read.
struct LogWindow {
  /// How many bytes of the file are looked at.
  let size: Int
  private let read: (_ offset: Int, _ count: Int) throws -> [UInt8]
  private var start = 0
  private var content: [UInt8] = []

  /// Creates a window onto the beginning of a file.
  ///
  /// - Parameters:
  ///   - size: How many bytes the file has.
  ///   - read: Reads bytes of the file.
  init(size: Int, read: @escaping (_ offset: Int, _ count: Int) throws -> [UInt8]) {
    self.size = size
    self.read = read
  }

  /// Returns bytes of the file; fewer than asked for if it has become shorter.
  ///
  /// - Precondition: They lie within the size.
  mutating func bytes(at offset: Int, count: Int) throws -> ArraySlice<UInt8> {
    if offset < start || offset + count > start + content.count {
      content = try read(offset, min(max(count, 1 << 18), size - offset))
      start = offset
    }
    return content[(offset - start)...].prefix(count)
  }
}
