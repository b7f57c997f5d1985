internal import Foundation

#if canImport(FoundationNetworking)
internal import FoundationNetworking
#endif

/// Sends requests through a transport under rules: the same for every transport.
struct HTTPClient: Sendable {
  let transport: any HTTPTransport
  let rules: HTTPRules
  private let timer: TransferTimer

  /// Creates a client.
  ///
  /// - Parameters:
  ///   - transport: The transport that sends the requests.
  ///   - rules: The rules that every request keeps to.
  ///   - clock: The clock that measures the times of the rules.
  init(transport: any HTTPTransport, rules: HTTPRules, clock: any Clock<Duration>) {
    self.transport = transport
    self.rules = rules
    timer = TransferTimer(clock: clock)
  }

  /// Sends a request, follows its redirects, and delivers the final answer.
  ///
  /// - Parameters:
  ///   - request: The request.
  ///   - receiver: The receiver of the final answer.
  ///   - turn: A closure that waits for the turn of the request at the target of a redirect.
  /// - Returns: The URL that has answered, and the redirects to it.
  /// - Throws: An error of the rules, of the transport or of the receiver.
  @concurrent
  func send(
    _ request: URLRequest,
    to receiver: any HTTPReceiver,
    turn: @concurrent @Sendable (URL) async throws -> Void = { _ in }
  ) async throws -> HTTPTrail {
    if let url = request.url, url.isFileURL, rules.allowsFileURLs {
      try FileAnswer(url: url).send(to: receiver, limit: rules.maximumBodyBytes)
      return HTTPTrail(url: url)
    }
    var redirects: [HTTPRedirect] = []
    var route = try HTTPRoute(request, headers: transport.headers, rules: rules.redirects)
    let watch = TransferWatch(timer: timer, rules: rules)
    while true {
      let hop = HopReceiver(route, rules: rules, receiver: receiver, watch: watch)
      let message = cookies(of: route.request, at: route.url)
      do {
        try await watch.during { [transport] in try await transport.send(message, to: hop) }
      } catch is EnoughReceived {
        return HTTPTrail(url: route.url, redirects: redirects)
      } catch _ where hop.isError && !Task.isCancelled {
        // The status counts, of whose explanation the rest is missing.
        return HTTPTrail(url: route.url, redirects: redirects)
      } catch {
        // What comes after the head of a redirect does not matter.
        guard hop.target != nil, !Task.isCancelled, !(error is TransferWatch.Elapsed) else {
          throw error is TransferWatch.Elapsed ? URLError(.timedOut) : error
        }
      }
      guard let target = hop.target else {
        guard hop.hasBegun else { throw URLError(.badServerResponse) }
        return HTTPTrail(url: route.url, redirects: redirects)
      }
      try route.follow(target.url, status: target.redirect.status)
      redirects.append(target.redirect)
      try await turn(target.url)
    }
  }

  /// Returns the request with the cookies for its URL, unless it has its own.
  private func cookies(of request: URLRequest, at url: URL) -> URLRequest {
    guard request.value(forHTTPHeaderField: "Cookie") == nil,
      let cookies = rules.cookies?.header(for: url)
    else { return request }
    var request = request
    request.setValue(cookies, forHTTPHeaderField: "Cookie")
    return request
  }
}

/// An error that a receiver throws to end a transfer of which it has what it needs.
struct EnoughReceived: Error {}

/// A file as the answer to a request of its URL.
private struct FileAnswer {
  let url: URL

  func send(to receiver: any HTTPReceiver, limit: Int64?) throws {
    guard let handle = try? FileHandle(forReadingFrom: url),
      let response = HTTPURLResponse(
        url: url,
        statusCode: 200,
        httpVersion: nil,
        headerFields: [:]
      )
    else { throw URLError(.fileDoesNotExist) }
    defer { try? handle.close() }
    try receiver.begin(response)
    var count: Int64 = 0
    while true {
      try Task.checkCancellation()
      let piece: Data?
      do {
        piece = try handle.read(upToCount: 65_536)
      } catch {
        // A folder can be opened, and not be read.
        throw URLError(.noPermissionsToReadFile)
      }
      guard let piece, !piece.isEmpty else { return }
      count += Int64(piece.count)
      if let limit, count > limit { throw URLError(.dataLengthExceedsMaximum) }
      try receiver.receive(piece)
    }
  }
}
