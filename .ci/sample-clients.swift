// Declarations of AsyncHTTPClient and SwiftNIO, as far as samples use them: without these packages, the samples
// compile all the same.

import Foundation

struct HTTPClient: Sendable {
  struct Configuration {
    enum RedirectConfiguration { case disallow }
    enum DecompressionLimit { case none }
    enum Decompression {
      case disabled
      case enabled(limit: DecompressionLimit)
    }

    var redirectConfiguration: RedirectConfiguration
    var decompression = Decompression.disabled

    init(redirectConfiguration: RedirectConfiguration) {
      self.redirectConfiguration = redirectConfiguration
    }
  }

  init(configuration: Configuration) {}

  func execute(_ request: HTTPClientRequest, timeout: TimeAmount) async throws -> HTTPClientResponse
  {
    throw HTTPClientError.cancelled
  }
}

struct TimeAmount {
  static func hours(_ count: Int64) -> TimeAmount { TimeAmount() }
}

struct HTTPMethod: Sendable {
  init(rawValue: String) {}
}

struct HTTPClientRequest: Sendable {
  struct Headers: Sendable {
    mutating func replaceOrAdd(name: String, value: String) {}
  }

  struct Body: Sendable {
    static func bytes<Bytes: RandomAccessCollection & Sendable>(_ bytes: Bytes) -> Body
    where Bytes.Element == UInt8 { Body() }
  }

  var method = HTTPMethod(rawValue: "GET")
  var headers = Headers()
  var body: Body?

  init(url: String) {}
}

struct HTTPClientResponse: Sendable {
  struct Status: Sendable { var code: UInt }

  var status: Status
  var headers: [(name: String, value: String)]
  var body: AsyncThrowingStream<ByteBuffer, any Error>
}

struct ByteBuffer: Sendable {}

extension Data {
  init(buffer: ByteBuffer) { self.init() }
}

struct HTTPClientError: Error, Equatable {
  private var number: Int

  static let cancelled = HTTPClientError(number: 0)
  static let remoteConnectionClosed = HTTPClientError(number: 1)
  static let connectTimeout = HTTPClientError(number: 2)
  static let readTimeout = HTTPClientError(number: 3)
  static let deadlineExceeded = HTTPClientError(number: 4)
}

struct NIOConnectionError: Error {}
