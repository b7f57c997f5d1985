internal import LoopbackOrigin
internal import Plexus

/// The server of the page, its stream and its questions.
final class PageServer: Sendable {
  let port: UInt16
  let token: AccessToken
  private let origin: LoopbackOrigin

  /// The limits of requests and connections.
  ///
  /// The table of paths, which grows with every path, is not kept.
  static var limits: OriginLimits {
    var limits = OriginLimits(headBytes: 8_192, bodyBytes: 8_192, connections: 64)
    limits.refusesConnections = true
    limits.requestTimeout = .seconds(10)
    limits.countsRequests = false
    return limits
  }

  /// The header fields of every answer; the page has a policy of its own.
  private static let securityHeaders: OriginHeaders = [
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
  ]

  /// Begins to serve.
  ///
  /// - Parameters:
  ///   - core: The sources.
  ///   - port: The port, or 0 for any free port.
  ///   - folder: The folder of the tokens of fixed ports, if there is one.
  /// - Throws: An ``InspectorError``.
  init(_ core: InspectorCore, port: UInt16, tokenFolder folder: String?) throws(InspectorError) {
    do {
      origin = try LoopbackOrigin(port: port, limits: Self.limits)
    } catch {
      throw InspectorError(error)
    }
    origin.errorHeaders = Self.securityHeaders
    self.port = origin.port
    if port != 0, let folder {
      token = TokenFile(port: port, in: folder).token()
    } else {
      token = AccessToken()
    }
    let rule = AccessRule(port: origin.port, token: token)
    let methods = Set(OriginRequest.Method.allCases)
    for pattern in ["/", "/*"] {
      origin.route(pattern, methods: methods) { request in
        Self.respond(to: request, rule, core)
      }
    }
  }

  /// Stops serving, and frees the port.
  func stop() {
    origin.stop()
  }

  private static func respond(
    to request: OriginRequest,
    _ rule: AccessRule,
    _ core: InspectorCore
  ) -> OriginResponse {
    var response =
      switch rule.decide(request) {
      case .refuse(let status): refusal(status)
      case .allow(""): page()
      case .allow("stream"): stream(request, core)
      case .allow(let path): answer(to: request, at: path, core)
      }
    response.allowsRanges = false
    for field in Self.securityHeaders.fields where response.headers[field.name] == nil {
      response.headers[field.name] = field.value
    }
    return response
  }

  /// Returns a response that says nothing of the request.
  ///
  /// It ends the connection, whose place a new one can then take, although its client sends more requests and reads nothing.
  private static func refusal(_ status: Int) -> OriginResponse {
    let text =
      switch status {
      case 403: "This page answers only its own address: copy it into a browser on this machine.\n"
      case 405: "This page is only read.\n"
      case 429: "Another question is being answered.\n"
      case 503: "There are \(InspectorCore.pageLimit) open pages; close one.\n"
      default: "There is nothing here. Open the address that the process prints.\n"
      }
    var response = OriginResponse(text: text, status: status)
    response.framing = .untilClose
    if status == 405 { response.headers["Allow"] = "GET" }
    return response
  }

  private static func page() -> OriginResponse {
    let nonce = AccessToken().text
    let template = String(decoding: PackageResources.inspector_html, as: UTF8.self)
    let text = template.split(separator: "{{nonce}}", omittingEmptySubsequences: false)
      .joined(separator: nonce)
    var response = OriginResponse(text: text, contentType: "text/html; charset=utf-8")
    response.headers["Content-Security-Policy"] = """
      default-src 'none'; script-src 'nonce-\(nonce)'; style-src 'nonce-\(nonce)'; \
      connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; \
      frame-ancestors 'none'
      """
    return response
  }

  private static func stream(_ request: OriginRequest, _ core: InspectorCore) -> OriginResponse {
    guard let stream = core.openPage(showing: request.query("show").flatMap { Int($0) }) else {
      return refusal(503)
    }
    return OriginResponse(stream: stream, contentType: "text/event-stream; charset=utf-8")
  }

  private static func answer(
    to request: OriginRequest,
    at path: String,
    _ core: InspectorCore
  ) -> OriginResponse {
    guard let id = request.query("source").flatMap({ Int($0) }) else { return refusal(404) }
    let answer: InspectorCore.Answer
    switch path {
    case "entries":
      answer = core.answer(on: id) { $0.entries(EntryQuery(request)) }
    case "entry":
      let (key, hash) = (request.query("key") ?? "", request.query("hash").flatMap { Int($0) })
      answer = core.answer(on: id) { $0.entry(key, hash: hash) }
    case "action":
      let number = request.query("number").flatMap { Int($0) } ?? 0
      answer = core.answer(on: id) { $0.difference(ofAction: number) }
    default: answer = .missing
    }
    switch answer {
    case .found(let json):
      return OriginResponse(headers: ["Content-Type": "application/json"], body: json.bytes)
    case .missing: return refusal(404)
    case .busy: return refusal(429)
    }
  }
}

extension EntryQuery {
  /// Reads a query; what it cannot read is as in a query without it.
  init(_ request: OriginRequest) {
    search = request.query("search") ?? ""
    state =
      switch request.query("state") {
      case "fresh": .fresh
      case "stale": .stale
      case "failed": .failed
      default: nil
      }
    order = request.query("sort").flatMap(Order.init) ?? .key
    isDescending = request.query("descending") == "1"
    if let number = request.query("number").flatMap(Double.init), !number.isNaN {
      let hash = request.query("hash").flatMap { Int($0) }
      position = Position(number: number, key: request.query("after") ?? "", hash: hash ?? .min)
    }
  }
}
