import CZlib
import Foundation
import NIOCore

/// Decodes a body in `gzip` or `deflate` (RFC 1952, RFC 1950) by zlib.
final class ContentDecoder {
  private enum Coding {
    case identity, zlib, unknown
  }

  private let coding: Coding
  /// zlib remembers the address.
  private let stream = UnsafeMutablePointer<z_stream>.allocate(capacity: 1)
  private lazy var piece = [UInt8](repeating: 0, count: 1 << 16)
  /// Whether there is no byte, or a member is complete.
  private var isComplete = true

  /// - Parameter codings: The elements of the header field `Content-Encoding`.
  init(codings: [Substring]) throws {
    let codings = codings.map { $0.lowercased() }.filter { !$0.isEmpty && $0 != "identity" }
    switch codings.first {
    case nil: coding = .identity
    case "gzip", "x-gzip", "deflate": coding = codings.count == 1 ? .zlib : .unknown
    default: coding = .unknown
    }
    stream.initialize(to: z_stream())
    guard coding == .zlib else { return }
    // A window of 15 bits; 32 stands for both formats.
    let size = Int32(MemoryLayout<z_stream>.size)
    guard inflateInit2_(stream, 15 + 32, ZLIB_VERSION, size) == Z_OK else {
      throw URLError(.cannotDecodeContentData)
    }
  }

  deinit {
    inflateEnd(stream)
    stream.deallocate()
  }

  /// Decodes a part of the body, in pieces of at most 64 kB.
  func decode(_ part: ByteBuffer, _ receive: (Data) throws -> Void) throws {
    switch coding {
    case .identity: try receive(Data(part.readableBytesView))
    case .unknown: throw URLError(.cannotDecodeContentData)
    case .zlib: try part.withUnsafeReadableBytes { try inflate($0, receive) }
    }
  }

  /// Ends the body.
  func end() throws {
    guard isComplete else { throw URLError(.cannotDecodeContentData) }
  }

  private func inflate(
    _ bytes: UnsafeRawBufferPointer,
    _ receive: (Data) throws -> Void
  ) throws {
    stream.pointee.next_in = UnsafeMutablePointer(
      mutating: bytes.baseAddress?.assumingMemoryBound(to: UInt8.self)
    )
    stream.pointee.avail_in = UInt32(bytes.count)
    repeat {
      let status = piece.withUnsafeMutableBufferPointer { piece in
        stream.pointee.next_out = piece.baseAddress
        stream.pointee.avail_out = UInt32(piece.count)
        return CZlib.inflate(stream, Z_NO_FLUSH)
      }
      switch status {
      case Z_OK: isComplete = false
      case Z_BUF_ERROR: return  // There is no more to decode.
      case Z_STREAM_END:
        isComplete = true
        inflateReset(stream)  // Another member can follow.
      default: throw URLError(.cannotDecodeContentData)
      }
      let count = piece.count - Int(stream.pointee.avail_out)
      if count > 0 { try receive(Data(piece.prefix(count))) }
    } while stream.pointee.avail_in > 0 || stream.pointee.avail_out == 0
  }
}
