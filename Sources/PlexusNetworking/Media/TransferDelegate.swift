// @unchecked Sendable because it inherits from NSObject; its only mutable state is behind a lock.

internal import Foundation
internal import Plexus

#if canImport(FoundationNetworking)
internal import FoundationNetworking
internal import PlexusSupport
#endif

/// A request whose answer is awaited.
struct Transfer: Sendable {
  let receiver: any MediaReceiver
  let continuation: CheckedContinuation<Void, any Error>
  var redirects = 0
}

/// Hands over what arrives to the one who waits for it.
final class TransferDelegate: NSObject, URLSessionDataDelegate, @unchecked Sendable {
  private let redirectLimit: Int
  private let transfers = Locked<[Int: Transfer]>([:])

  init(redirectLimit: Int) {
    self.redirectLimit = redirectLimit
  }

  func add(_ transfer: Transfer, for id: Int) {
    transfers.withLock { $0[id] = transfer }
  }

  /// Ends a transfer, unless it has ended.
  func end(_ id: Int, _ result: Result<Void, any Error>) {
    transfers.withLock { $0.removeValue(forKey: id) }?.continuation.resume(with: result)
  }

  private func end(_ task: URLSessionTask, _ error: any Error) {
    end(task.taskIdentifier, .failure(error))
    task.cancel()
  }

  func urlSession(
    _ session: URLSession,
    dataTask: URLSessionDataTask,
    didReceive response: URLResponse,
    completionHandler: @escaping (URLSession.ResponseDisposition) -> Void
  ) {
    guard let transfer = transfers.withLock({ $0[dataTask.taskIdentifier] }) else {
      return completionHandler(.cancel)
    }
    do {
      guard let response = response as? HTTPURLResponse else { throw URLError(.badServerResponse) }
      try transfer.receiver.begin(response)
      completionHandler(.allow)
    } catch {
      completionHandler(.cancel)
      end(dataTask, error)
    }
  }

  func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
    guard let transfer = transfers.withLock({ $0[dataTask.taskIdentifier] }) else { return }
    do {
      try transfer.receiver.receive(data)
    } catch {
      end(dataTask, error)
    }
  }

  func urlSession(
    _ session: URLSession,
    task: URLSessionTask,
    willPerformHTTPRedirection response: HTTPURLResponse,
    newRequest request: URLRequest,
    completionHandler: @escaping (URLRequest?) -> Void
  ) {
    let redirects = transfers.withLock { transfers -> Int in
      transfers[task.taskIdentifier]?.redirects += 1
      return transfers[task.taskIdentifier]?.redirects ?? .max
    }
    let scheme = request.url?.scheme?.lowercased()
    if redirects > redirectLimit {
      completionHandler(nil)
      end(task, URLError(.httpTooManyRedirects))
    } else if scheme != "http", scheme != "https" {
      completionHandler(nil)
      end(task, URLError(.unsupportedURL))
    } else {
      completionHandler(request)
    }
  }

  func urlSession(
    _ session: URLSession,
    task: URLSessionTask,
    didCompleteWithError error: (any Error)?
  ) {
    guard let error else { return end(task.taskIdentifier, .success(())) }
    end(
      task.taskIdentifier,
      .failure((error as? URLError)?.namingLostConnections ?? error)
    )
  }
}
