import LoopbackOrigin
import TestSupport
import Testing

@Suite(.fewAtOnce)
struct `An origin with conditional requests` {
  let origin: LoopbackOrigin

  init() throws {
    origin = try LoopbackOrigin()
    origin.route("/file") { _ in
      var response = OriginResponse(text: "0123456789")
      response.etag = "\"v1\""
      response.headers["Last-Modified"] = "Fri, 08 Feb 2013 06:00:00 GMT"
      return response
    }
    origin.route("/weak") { _ in
      var response = OriginResponse(text: "0123456789")
      response.etag = "W/\"v1\""
      return response
    }
  }

  @Test(arguments: [
    ("bytes=0-3", "0123", "bytes 0-3/10"),
    ("bytes=4-", "456789", "bytes 4-9/10"),
    ("bytes=-2", "89", "bytes 8-9/10"),
    ("bytes=8-100", "89", "bytes 8-9/10"),
  ])
  func `an origin sends the requested part of a resource`(
    range: String,
    body: String,
    contentRange: String
  ) async throws {
    let client = try await RawClient(port: origin.port)
    let response = try await client.exchange("/file", headers: ["Range: \(range)"])
    #expect(response.status == 206)
    #expect(response.body == body)
    #expect(response.headers["content-range"] == contentRange)
    #expect(response.headers["content-length"] == "\(body.count)")
    #expect(response.headers["etag"] == "\"v1\"")
  }

  @Test func `an origin rejects a range outside the resource`() async throws {
    let client = try await RawClient(port: origin.port)
    let response = try await client.exchange("/file", headers: ["Range: bytes=10-"])
    #expect(response.status == 416)
    #expect(response.headers["content-range"] == "bytes */10")
    #expect(response.body == "")
  }

  @Test(arguments: ["lines=1-2", "bytes=0-1,3-4", "bytes=5-2"])
  func `an origin sends the whole resource for an unsupported range`(range: String) async throws {
    let client = try await RawClient(port: origin.port)
    let response = try await client.exchange("/file", headers: ["Range: \(range)"])
    #expect(response.status == 200)
    #expect(response.body == "0123456789")
  }

  @Test func `an origin sends the whole resource if the route ignores ranges or fails`()
    async throws
  {
    origin.route("/whole") { _ in
      var response = OriginResponse(text: "0123456789")
      response.allowsRanges = false
      return response
    }
    origin.route("/error") { _ in OriginResponse(text: "0123456789", status: 500) }
    let client = try await RawClient(port: origin.port)
    let whole = try await client.exchange("/whole", headers: ["Range: bytes=0-3"])
    #expect(whole.status == 200)
    #expect(whole.headers["accept-ranges"] == nil)
    let error = try await client.exchange("/error", headers: ["Range: bytes=0-3"])
    #expect(error.status == 500)
    #expect(error.body == "0123456789")
  }

  @Test(arguments: [
    ("/file", "\"v1\"", true),
    ("/file", "\"v0\", W/\"v1\"", true),
    ("/file", "*", true),
    ("/file", "\"v2\"", false),
    ("/file", "v1", false),
    ("/weak", "\"v1\"", true),
    ("/weak", "W/\"v1\"", true),
  ])
  func `an origin sends no body to a client that has the current version`(
    path: String,
    tag: String,
    hasIt: Bool
  ) async throws {
    let client = try await RawClient(port: origin.port)
    let response = try await client.exchange(path, headers: ["If-None-Match: \(tag)"])
    #expect(response.status == (hasIt ? 304 : 200))
    #expect(response.body == (hasIt ? "" : "0123456789"))
    #expect(response.headers["etag"]?.hasSuffix("\"v1\"") == true)
    // The connection stays open.
    #expect(try await client.exchange("/file").status == 200)
  }

  @Test(arguments: [
    (["If-Modified-Since: Fri, 08 Feb 2013 06:00:00 GMT"], 304),
    (["If-Modified-Since: Thu, 07 Feb 2013 06:00:00 GMT"], 200),
    (["If-Modified-Since: Fri, 08 Feb 2013 06:00:00 GMT", "If-None-Match: \"v2\""], 200),
    (["If-None-Match: \"v1\"", "Range: bytes=0-1"], 304),
  ])
  func `an origin prefers the tag of a condition to its date, and both to the range`(
    fields: [String],
    status: Int
  ) async throws {
    let client = try await RawClient(port: origin.port)
    #expect(try await client.exchange("/file", headers: fields).status == status)
  }

  @Test(arguments: [
    ("/file", "\"v1\"", 206),
    ("/file", "\"v2\"", 200),
    ("/file", "Fri, 08 Feb 2013 06:00:00 GMT", 206),
    ("/file", "Sat, 09 Feb 2013 06:00:00 GMT", 200),
    ("/weak", "W/\"v1\"", 200),
    ("/weak", "\"v1\"", 200),
  ])
  func `an origin sends a part only if the client has the rest of that version`(
    path: String,
    version: String,
    status: Int
  ) async throws {
    let client = try await RawClient(port: origin.port)
    let response = try await client.exchange(
      path,
      headers: ["Range: bytes=5-", "If-Range: \(version)"]
    )
    #expect(response.status == status)
    #expect(response.body == (status == 206 ? "56789" : "0123456789"))
  }

  @Test func `an origin describes the whole resource in an answer to HEAD`() async throws {
    let client = try await RawClient(port: origin.port)
    let response = try await client.exchange("/file", method: "HEAD", headers: ["Range: bytes=0-1"])
    #expect(response.status == 200)
    #expect(response.headers["content-length"] == "10")
    let known = try await client.exchange(
      "/file",
      method: "HEAD",
      headers: ["If-None-Match: \"v1\""]
    )
    #expect(known.status == 304)
  }
}
