/// The progress of a download.
public struct DownloadProgress: Hashable, Sendable {
  /// The bytes on disk, those of an earlier part included.
  public let receivedBytes: Int64
  /// The bytes of the whole file; `nil` as long as the server has not said.
  public let totalBytes: Int64?

  /// Creates a progress.
  ///
  /// - Parameters:
  ///   - receivedBytes: The bytes that are there.
  ///   - totalBytes: The bytes of the whole file, if known.
  public init(receivedBytes: Int64, totalBytes: Int64?) {
    self.receivedBytes = receivedBytes
    self.totalBytes = totalBytes
  }

  /// The progress of a whole file.
  init(whole length: Int64) {
    self.init(receivedBytes: length, totalBytes: length)
  }

  /// The share that has been received, from 0 to 1; `nil` as long as the total is not known.
  public var fraction: Double? {
    guard let totalBytes else { return nil }
    return totalBytes > 0 ? min(1, Double(receivedBytes) / Double(totalBytes)) : 1
  }
}
