import Foundation
import LoopbackOrigin
import Plexus
import PlexusNetworking
import PlexusTesting
import TestSupport
import Testing

/// With servers that cannot be trusted.
@Suite(.fewAtOnce)
struct `Trust in a server` {
  private func fetch(_ address: String) async throws {
    let url = try #require(URL(string: address))
    let fetcher = HTTPFetcher(url, transport: patientTransport, rules: .patient) { $0.count }
    _ = try await fetcher.fetch(FetchContext(previousValue: 1))
  }

  @Test(
    .guarantee(.brokenResponsesAreNotOffline),
    .enabled(if: OpenSSLServer.executable != nil, "openssl is not installed here")
  )
  func `a certificate that is not trusted is no failure of connectivity`() async throws {
    let server = try OpenSSLServer()
    for host in ["localhost", "127.0.0.1"] {
      let error = await #expect(throws: URLError.self) {
        try await fetch("https://\(host):\(server.port)/")
      }
      #expect(error?.isConnectivityFailure == false)
      let codes: [URLError.Code] = [
        .serverCertificateUntrusted, .serverCertificateHasUnknownRoot,
      ]
      #expect(codes.contains(error?.code ?? .unknown), "\(error as Any)")
    }
  }

  @Test(
    .guarantee(.brokenResponsesAreNotOffline),
    .enabled(if: OpenSSLServer.executable != nil, "openssl is not installed here")
  )
  func `a value does not replace an answer that cannot be trusted`() async throws {
    let server = try OpenSSLServer()
    let url = try #require(URL(string: "https://localhost:\(server.port)/"))
    let fetcher = HTTPFetcher(url, transport: patientTransport, rules: .patient) { $0.count }
    let value = Multiplexer<Int>(policy: .http, clock: ManualClock()) {
      (context: FetchContext<Int>) in
      // The first one is of a time when the server could be trusted.
      guard context.previousValue != nil else { return .value(1) }
      return try await fetcher.fetch(context)
    }
    #expect(try await value.request() == 1)
    await #expect(throws: URLError.self) { try await value.request() }
  }

  @Test func `a server without TLS is no failure of connectivity, and one that is away is`()
    async throws
  {
    // A greeting of TLS is too large a request, and answered in the clear.
    let origin = try LoopbackOrigin(limits: OriginLimits(headBytes: 64))
    let error = await #expect(throws: URLError.self) {
      try await fetch("https://127.0.0.1:\(origin.port)/")
    }
    #expect(error?.code == .secureConnectionFailed)
    await origin.goOffline()
    let away = await #expect(throws: URLError.self) {
      try await fetch("https://127.0.0.1:\(origin.port)/")
    }
    #expect(away?.code == .cannotConnectToHost)
  }
}
