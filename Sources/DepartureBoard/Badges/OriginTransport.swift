import Foundation
import PlexusNetworking
import Synchronization

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// A transport that sends requests for the host `origin` to the origin of this run.
///
/// A media loader names files by their URL. The port differs between runs, so it must not be part of the URL.
final class OriginTransport: HTTPTransport {
  private let address: String
  private let transport = URLSessionTransport(timeout: 30)
  private let answers = Atomic(0)

  /// Creates a transport.
  ///
  /// - Parameter address: The address of the origin without a path.
  init(to address: String) {
    self.address = address
  }

  /// Returns the URL that identifies a file of the origin.
  ///
  /// - Parameter path: The path of the file.
  /// - Returns: The URL, or `nil` if the path is invalid.
  static func url(of path: String) -> URL? {
    path.addingPercentEncoding(withAllowedCharacters: .urlPathAllowed)
      .flatMap { URL(string: "http://origin" + $0) }
  }

  /// The number of completed responses.
  var answerCount: Int {
    answers.load(ordering: .relaxed)
  }

  @concurrent
  func send(_ request: URLRequest, to receiver: any HTTPReceiver) async throws {
    var request = request
    if let url = request.url {
      request.url = URL(string: address + url.path(percentEncoded: true))
    }
    try await transport.send(request, to: receiver)
    answers.add(1, ordering: .relaxed)
  }
}
