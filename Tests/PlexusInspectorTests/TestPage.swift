import Foundation
import PlexusInspector
import TestSupport
import Testing

/// A client of an inspector that reads frames as the page does.
final class TestPage {
  private let client: RawClient

  /// Opens the page.
  ///
  /// - Parameters:
  ///   - inspector: The inspector.
  ///   - source: The number of the source whose details the page shows.
  init(_ inspector: Inspector, showing source: Int? = nil) async throws {
    let query = source.map { "?show=\($0)" } ?? ""
    client = try await inspector.request("stream\(query)")
    var head = ""
    while !head.hasSuffix("\r\n\r\n") { head += try await client.receive(exactly: 1) }
    try #require(head.hasPrefix("HTTP/1.1 200 OK\r\n"), "\(head)")
    #expect(head.contains("Content-Type: text/event-stream"))
  }

  /// Opens the page, and shows the source with a name.
  static func showing(_ name: String, of inspector: Inspector) async throws -> TestPage {
    let overview = try await TestPage(inspector).frame { $0.source(name) != nil }
    return try await TestPage(inspector, showing: overview.source(name)?.id)
  }

  /// Returns the next frame.
  func frame() async throws -> Frame {
    var text = ""
    while !text.hasSuffix("\n\n") {
      let next = try await client.receive(exactly: 1)
      try #require(!next.isEmpty, "The stream has ended")
      text += next
    }
    try #require(text.hasPrefix("data: "))
    return try Frame(text.dropFirst(6))
  }

  /// Returns the next frame that satisfies a condition; fails if none of very many does.
  func frame(where isWanted: (Frame) -> Bool) async throws -> Frame {
    for _ in 0..<160 {
      let frame = try await frame()
      if isWanted(frame) { return frame }
    }
    throw Broken(reason: "No frame satisfies the condition")
  }

  /// Waits for the end of the stream.
  func end() async throws {
    _ = try await client.receiveToEnd()
  }
}

/// A frame that the page is sent.
struct Frame {
  struct Source {
    let id: Int
    let kind: String
    let hasEnded: Bool
    let numbers: [String: Any]

    func number(_ name: String) -> Int? { numbers[name] as? Int }
  }

  let text: String
  let json: [String: Any]

  init(_ text: Substring) throws {
    self.text = String(text)
    let value = try JSONSerialization.jsonObject(with: Data(text.utf8))
    json = try #require(value as? [String: Any])
  }

  /// The names of the sources, in order.
  var names: [String] {
    (json["sources"] as? [[String: Any]] ?? []).compactMap { $0["name"] as? String }
  }

  /// Returns the source with a name.
  func source(_ name: String) -> Source? {
    let sources = json["sources"] as? [[String: Any]] ?? []
    guard let source = sources.first(where: { $0["name"] as? String == name }),
      let id = source["id"] as? Int
    else { return nil }
    return Source(
      id: id,
      kind: source["kind"] as? String ?? "",
      hasEnded: source["ended"] as? Bool == true,
      numbers: source["numbers"] as? [String: Any] ?? [:]
    )
  }

  /// The details of the shown source.
  var details: [String: Any] { json["details"] as? [String: Any] ?? [:] }

  /// Returns a list of the details.
  func list(_ name: String) -> [[String: Any]] { details[name] as? [[String: Any]] ?? [] }
}

extension Inspector {
  /// The port of the page.
  var port: UInt16 { UInt16(url.port ?? 0) }

  /// The random part of the address.
  var token: String { String(url.path(percentEncoded: false).split(separator: "/")[0]) }

  /// Sends a request under the address.
  func request(_ path: String) async throws -> RawClient {
    let client = try await RawClient(port: port)
    try await client.send("GET /\(token)/\(path) HTTP/1.1\r\nHost: 127.0.0.1:\(port)\r\n\r\n")
    return client
  }

  /// Returns the answer to a question of the page.
  func answer(_ path: String) async throws -> [String: Any] {
    let response = try await request(path).response()
    try #require(response.status == 200, "\(response)")
    let value = try JSONSerialization.jsonObject(with: Data(response.body.utf8))
    return try #require(value as? [String: Any])
  }

  /// Returns the entries of the source with a name.
  func entries(
    of name: String,
    _ parameters: KeyValuePairs<String, String> = [:]
  ) async throws -> [String: Any] {
    let id = try #require(try await TestPage(self).frame().source(name)?.id)
    let query = parameters.map { "&\($0.key)=\($0.value)" }.joined()
    return try await answer("entries?source=\(id)\(query)")
  }
}

extension Inspector {
  /// Returns the entries after the last one of a window.
  func window(
    after window: [String: Any],
    of name: String,
    _ parameters: KeyValuePairs<String, String> = [:]
  ) async throws -> [String: Any] {
    let last = try #require(window["last"] as? [String: Any])
    let fields: KeyValuePairs = ["number": "number", "after": "key", "hash": "hash"]
    let id = try #require(try await TestPage(self).frame().source(name)?.id)
    let position = fields.map { "&\($0.key)=\("\(last[$0.value] ?? "")".escaped)" }
    let query = parameters.map { "&\($0.key)=\($0.value)" }
    return try await answer("entries?source=\(id)\((query + position).joined())")
  }
}

extension String {
  /// The text as a part of a query.
  var escaped: String { addingPercentEncoding(withAllowedCharacters: CharacterSet()) ?? "" }
}

extension [String: Any] {
  /// Returns the texts of a column of the rows.
  func column(_ name: String) -> [String] {
    (self["rows"] as? [[String: Any]] ?? []).map { "\($0[name] ?? "")" }
  }
}

/// A profile with something that must not be seen.
struct Profile: Sendable, Equatable {
  var name: String
  var visits = 0
}
