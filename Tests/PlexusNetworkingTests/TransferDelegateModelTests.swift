import Foundation
import Plexus
import TestSupport
import Testing

@testable import PlexusNetworking

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// Takes nothing.
private struct NoReceiver: MediaReceiver {
  func begin(_ response: HTTPURLResponse) throws {}
  func receive(_ bytes: Data) throws {}
}

@Suite(.fewAtOnce, .timeLimit(.minutes(20)))
struct `Redirects of a transfer` {
  private let session = URLSession(configuration: .ephemeral)

  /// Asks for a redirect as a session does; returns what may be sent, and the error of the transfer.
  private func redirect(
    _ targets: [String],
    limit: Int = 5
  ) async throws -> (sent: [String], any Error) {
    let delegate = TransferDelegate(redirectLimit: limit)
    let origin = try #require(URL(string: "http://127.0.0.1:1/"))
    let task = session.dataTask(with: origin)
    defer { task.cancel() }
    let response = try #require(
      HTTPURLResponse(url: origin, statusCode: 302, httpVersion: nil, headerFields: nil)
    )
    var sent: [String] = []
    do {
      try await withCheckedThrowingContinuation { continuation in
        delegate.add(
          Transfer(receiver: NoReceiver(), continuation: continuation),
          for: task.taskIdentifier
        )
        for target in targets {
          guard let url = URL(string: target) else { continue }
          delegate.urlSession(
            session,
            task: task,
            willPerformHTTPRedirection: response,
            newRequest: URLRequest(url: url)
          ) { request in
            if let text = request?.url?.absoluteString { sent.append(text) }
          }
        }
        delegate.end(task.taskIdentifier, .failure(CancellationError()))
      }
    } catch {
      return (sent, error)
    }
    throw CancellationError()
  }

  @Test(arguments: [
    "file:///etc/passwd", "FILE:///etc/passwd", "ftp://localhost/", "data:,a", "about:blank", "a/b",
  ])
  func `another scheme is refused, whatever the session would do`(target: String) async throws {
    let (sent, error) = try await redirect([target])
    #expect(sent.isEmpty)
    #expect((error as? URLError)?.code == .unsupportedURL)
  }

  @Test func `http and https are followed within the limit`() async throws {
    let targets = ["http://localhost/1", "HTTPS://localhost/2", "https://localhost/3"]
    let (sent, error) = try await redirect(targets, limit: 2)
    #expect(sent == Array(targets.prefix(2)))
    #expect((error as? URLError)?.code == .httpTooManyRedirects)
  }

  @Test func `a transfer that has ended is redirected nowhere`() async throws {
    let (sent, _) = try await redirect(["ftp://localhost/", "http://localhost/"])
    #expect(sent.isEmpty)
  }
}
