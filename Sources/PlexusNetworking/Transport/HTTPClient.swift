internal import Foundation

#if canImport(FoundationNetworking)
internal import FoundationNetworking
#endif

/// Sends requests through a transport under rules: the same for every transport.
struct HTTPClient: Sendable {
  let transport: any HTTPTransport
  let rules: HTTPRules
  /// The accounts of the transport, if it has any.
  let accounts: HTTPAccounts?
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
    accounts = transport.accounts
    timer = TransferTimer(clock: clock)
  }

  /// Returns the credentials of a request that is made now.
  func credentials() -> HTTPCredentials {
    HTTPCredentials(headers: transport.headers, rules: rules)
  }

  /// Sends a request, follows its redirects, and delivers the final answer.
  ///
  /// - Parameters:
  ///   - request: The request.
  ///   - credentials: The credentials of the request; the present ones by default.
  ///   - receiver: The receiver of the final answer.
  ///   - turn: A closure that waits for the turn of the request at the target of a redirect.
  /// - Returns: The URL that has answered, and the redirects to it.
  /// - Throws: An error of the rules, of the transport or of the receiver.
  @concurrent
  func send(
    _ request: URLRequest,
    with credentials: HTTPCredentials? = nil,
    to receiver: any HTTPReceiver,
    turn: @concurrent @Sendable (URL) async throws -> Void = { _ in }
  ) async throws -> HTTPTrail {
    if let url = request.url, url.isFileURL, rules.allowsFileURLs {
      guard request.asksForValue else {
        throw HTTPRequestError.methodOfFile(request.httpMethod ?? "", url)
      }
      try FileAnswer(url: url).send(to: receiver, limit: rules.maximumBodyBytes)
      return HTTPTrail(url: url)
    }
    let credentials = credentials ?? self.credentials()
    var route = try HTTPRoute(request, headers: credentials.headers, rules: rules.redirects)
    var trail = HTTPTrail(url: route.url)
    let watch = TransferWatch(timer: timer, rules: rules)
    while true {
      let (message, cookies) = try message(route, credentials)
      if !cookies.areOriginal { trail.hasChangedCookies = true }
      let hop = HopReceiver(route, rules: rules, receiver: receiver, watch: watch) { fields, url in
        credentials.store(fields, from: url, sent: cookies)
      }
      do {
        try await watch.during { [transport] in
          try await HTTPCredentials.$sending.withValue(credentials) {
            try await transport.send(message, to: hop)
          }
        }
      } catch is EnoughReceived {
        return trail
      } catch _ where hop.isError && !Task.isCancelled {
        // The status counts, of whose explanation the rest is missing.
        return trail
      } catch {
        // What comes after the head of a redirect does not matter.
        guard hop.target != nil, !Task.isCancelled, !(error is TransferWatch.Elapsed) else {
          throw error is TransferWatch.Elapsed ? URLError(.timedOut) : error
        }
      }
      guard let target = hop.target else {
        guard hop.hasBegun else { throw URLError(.badServerResponse) }
        return trail
      }
      try route.follow(target.url, status: target.redirect.status)
      trail.url = route.url
      trail.redirects.append(target.redirect)
      if credentials.haveCookies || accounts != nil { trail.origins.insert(route.url.origin) }
      try await turn(target.url)
    }
  }

  /// Returns the next request with the cookies for its URL, unless it has its own.
  private func message(
    _ route: HTTPRoute,
    _ credentials: HTTPCredentials
  ) throws -> (request: URLRequest, cookies: HTTPCredentials.Sent) {
    guard route.request.value(forHTTPHeaderField: "Cookie") == nil else {
      return (route.request, .own)
    }
    let cookies = try credentials.cookiesToSend(to: route.url)
    var request = route.request
    if let header = cookies.header { request.setValue(header, forHTTPHeaderField: "Cookie") }
    return (request, cookies)
  }
}

/// An error that a receiver throws to end a transfer of which it has what it needs.
struct EnoughReceived: Error {}

/// A file as the answer to a request of its URL.
private struct FileAnswer {
  let url: URL

  func send(to receiver: any HTTPReceiver, limit: Int64?) throws {
    guard let handle = try? FileHandle(forReadingFrom: url) else { throw URLError(fault) }
    defer { try? handle.close() }
    guard
      let response = HTTPURLResponse(
        url: url,
        statusCode: 200,
        httpVersion: nil,
        headerFields: [:]
      )
    else { throw URLError(.badURL) }
    try receiver.begin(response)
    var count: Int64 = 0
    while true {
      try Task.checkCancellation()
      let piece: Data?
      do {
        piece = try handle.read(upToCount: 65_536)
      } catch {
        // A folder can be opened, and not be read.
        throw URLError(fault)
      }
      guard let piece, !piece.isEmpty else { return }
      count += Int64(piece.count)
      if let limit, count > limit { throw URLError(.dataLengthExceedsMaximum) }
      try receiver.receive(piece)
    }
  }

  /// Why the file cannot be read.
  private var fault: URLError.Code {
    let path = url.path(percentEncoded: false)
    guard let attributes = try? FileManager.default.attributesOfItem(atPath: path) else {
      return .fileDoesNotExist
    }
    let isFolder = attributes[.type] as? FileAttributeType == .typeDirectory
    return isFolder ? .fileIsDirectory : .noPermissionsToReadFile
  }
}
