import Foundation
import LoopbackOrigin
import Plexus
import PlexusNetworking
import PlexusTesting
import TestSupport
import Testing

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// The freshness of a value that a redirect has led to.
@Suite(.fewAtOnce)
struct `A value behind a redirect` {
  let origin: LoopbackOrigin
  let cache: HTTPCache<String>
  let clock = ManualClock()
  let redirect = Guarded(OriginResponse(status: 302))
  let asked = Guarded<[String]>([])

  init() throws {
    origin = try LoopbackOrigin(timeOf: clock)
    cache = HTTPCache(
      transport: patientTransport,
      rules: .patient,
      clock: clock,
      now: { [clock] in clock.timeOfDay },
      decode: { String(decoding: $0.body, as: UTF8.self) }
    )
    serve(origin)
  }

  private func serve(_ origin: LoopbackOrigin) {
    origin.route("/*") { [asked, redirect] request in
      asked.withLock { $0.append(request.path) }
      guard request.path != "/latest" else { return redirect.withLock { $0 } }
      var response = OriginResponse(
        headers: ["Cache-Control": "max-age=3600"],
        body: Array(request.path.utf8)
      )
      response.etag = "\"\(request.path)\""
      return response
    }
  }

  private func lead(to path: String, status: Int = 302, _ headers: OriginHeaders = [:]) {
    redirect.withLock { redirect in
      redirect = OriginResponse(status: status, headers: headers)
      redirect.headers["Location"] = path
    }
  }

  private func latest(_ headers: [String: String] = [:]) async throws -> String {
    var request = URLRequest(url: try #require(URL(string: origin.address + "/latest")))
    for (name, value) in headers { request.setValue(value, forHTTPHeaderField: name) }
    return try await cache.request(request)
  }

  private var paths: [String] { asked.withLock { $0 } }

  @Test(.guarantee(.redirectsLimitFreshness), arguments: [302, 303, 307])
  func `a value behind a redirect is requested each time if the redirect is temporary`(
    status: Int
  ) async throws {
    lead(to: "/v1", status: status)
    for _ in 0..<2 { #expect(try await latest() == "/v1") }
    #expect(paths == ["/latest", "/v1", "/latest", "/v1"])
    lead(to: "/v2", status: status)
    #expect(try await latest() == "/v2")
  }

  @Test(arguments: [301, 308])
  func `a value behind a redirect is fresh as long as it says if the redirect is permanent`(
    status: Int
  ) async throws {
    lead(to: "/v1", status: status)
    for _ in 0..<2 { #expect(try await latest() == "/v1") }
    #expect(paths == ["/latest", "/v1"])
    clock.advance(by: .seconds(3601))
    #expect(try await latest() == "/v1")
    #expect(paths.count == 4)
  }

  @Test(.guarantee(.redirectsLimitFreshness), arguments: [301, 302])
  func `a value behind a redirect is fresh as long as the redirect says, and no longer`(
    status: Int
  ) async throws {
    lead(to: "/v1", status: status, ["Cache-Control": "max-age=60"])
    #expect(try await latest() == "/v1")
    clock.advance(by: .seconds(59))
    #expect(try await latest() == "/v1")
    #expect(paths.count == 2)
    lead(to: "/v2", status: status, ["Cache-Control": "max-age=60, stale-while-revalidate=0"])
    clock.advance(by: .seconds(1))
    #expect(try await latest() == "/v2")
  }

  @Test(
    .guarantee(.redirectsLimitFreshness),
    arguments: ["no-store", "no-cache, max-age=60", "max-age=0", "Vary: *"]
  )
  func `a value behind a redirect is requested each time if the redirect says so`(
    control: String
  ) async throws {
    let isVary = control.hasPrefix("Vary")
    let headers: OriginHeaders =
      isVary ? ["Cache-Control": "max-age=60", "Vary": "*"] : ["Cache-Control": control]
    lead(to: "/v1", status: 301, headers)
    for _ in 0..<2 { #expect(try await latest() == "/v1") }
    #expect(paths == ["/latest", "/v1", "/latest", "/v1"])
  }

  @Test(.guarantee(.redirectsLimitFreshness))
  func `a value behind a redirect is for requests with the fields that the redirect depends on`()
    async throws
  {
    let headers: OriginHeaders = ["Cache-Control": "max-age=60", "Vary": "Accept-Language"]
    lead(to: "/de", headers)
    #expect(try await latest(["Accept-Language": "de"]) == "/de")
    lead(to: "/fr", headers)
    #expect(try await latest(["Accept-Language": "fr"]) == "/fr")
    #expect(try await latest(["Accept-Language": "de"]) == "/de")
    #expect(paths.count == 4)
  }

  @Test func `a value behind a redirect is revalidated where it came from, and by no other place`()
    async throws
  {
    lead(to: "/v1")
    _ = try await latest()
    _ = try await latest()
    #expect(cache.statistics.revalidations == 1)
    lead(to: "/v2")
    #expect(try await latest() == "/v2")
    #expect(cache.statistics.revalidations == 1)
  }

  @Test(.guarantee(.redirectsLimitFreshness))
  func `a media loader that revalidates requests a value behind a temporary redirect each time`()
    async throws
  {
    // A media loader takes the time of day from the system.
    let (origin, folder) = (try LoopbackOrigin(), MediaTestFolder())
    serve(origin)
    let loader = MediaLoader(
      directory: folder.url,
      transport: patientTransport,
      rules: .patient,
      revalidates: true,
      retry: .never
    )
    let url = try #require(URL(string: origin.address + "/latest"))
    let text = {
      String(decoding: try Data(contentsOf: try await loader.request(url)), as: UTF8.self)
    }
    lead(to: "/v1")
    for _ in 0..<2 { #expect(try await text() == "/v1") }
    #expect(paths == ["/latest", "/v1", "/latest", "/v1"])
    lead(to: "/v2", status: 301)
    for _ in 0..<2 { #expect(try await text() == "/v2") }
    #expect(paths.count == 6)
  }

  @Test(
    .guarantee(.redirectsLimitFreshness),
    arguments: ["no-store", "no-cache", "max-age=0, must-revalidate"]
  )
  func `a redirect can forbid the use of a value behind it while its server is away`(
    control: String
  ) async throws {
    for isForbidden in [false, true] {
      lead(to: "/v1", status: 301, ["Cache-Control": isForbidden ? control : "max-age=0"])
      #expect(try await latest() == "/v1")
      origin.inject(.raw([]), for: "/latest", count: 9)
      if isForbidden {
        await #expect(throws: HTTPRevalidationError.self) { try await latest() }
      } else {
        #expect(try await latest() == "/v1")
      }
      origin.removeFaults()
    }
  }
}
