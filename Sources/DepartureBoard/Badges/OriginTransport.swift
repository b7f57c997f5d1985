import Foundation
import PlexusNetworking
import Synchronization

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// Sends what is asked of the host `origin` to the origin of this run, which has another port each time.
///
/// A media loader keeps files under their URL: with the port in it, no later run would find them.
final class OriginTransport: HTTPTransport {
  private let address: String
  private let transport = URLSessionTransport(timeout: 30)
  private let answers = Atomic(0)

  /// Creates a transport.
  ///
  /// - Parameter address: The address of the origin, without a path.
  init(to address: String) {
    self.address = address
  }

  /// The URL under which a file of the origin is known.
  ///
  /// - Parameter path: The path of the file.
  /// - Returns: The URL; `nil` if the path cannot be part of one.
  static func url(of path: String) -> URL? {
    path.addingPercentEncoding(withAllowedCharacters: .urlPathAllowed)
      .flatMap { URL(string: "http://origin" + $0) }
  }

  /// The answers that have come completely.
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
