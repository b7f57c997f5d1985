import Foundation
import Plexus
import PlexusNetworking
import PlexusTesting
import TestSupport
import Testing

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

@Suite(.fewAtOnce) struct `Tokens that end between requests` {
  private let ended = Log<String>()
  private let clock = ManualClock()

  private func token() -> Multiplexer<TestToken> {
    Multiplexer<TestToken>(policy: CachePolicy(timeToLive: .seconds(100)), clock: clock) {
      throw NotSignedIn()
    }
  }

  private func transport(_ token: Multiplexer<TestToken>) -> TokenTransport<TestToken> {
    SignInDesk.transport(
      over: ClosureTransport { _, request, receiver in
        try receiver.take(request, status: 200, request.authorization)
      },
      token: token,
      ended: ended
    )
  }

  @Test func `the end of a sign-in whose token was never sent is reported`() async throws {
    let token = token()
    let transport = transport(token)
    _ = try? await SignInDesk.get("https://api.example/", by: transport)
    #expect(ended.entries.count == 1)
    // The user signs in; the next request comes after the token has expired.
    token.store(TestToken(account: "a", number: 1))
    clock.advance(by: .seconds(100))
    await #expect(throws: NotSignedIn.self) {
      try await SignInDesk.get("https://api.example/", by: transport)
    }
    #expect(ended.entries.count == 2)
  }

  @Test func `the end of a sign-in is reported once a request was sent with its token`()
    async throws
  {
    let token = token()
    let transport = transport(token)
    _ = try? await SignInDesk.get("https://api.example/", by: transport)
    token.store(TestToken(account: "a", number: 1))
    #expect(try await SignInDesk.get("https://api.example/", by: transport) == "a1")
    clock.advance(by: .seconds(100))
    _ = try? await SignInDesk.get("https://api.example/", by: transport)
    #expect(ended.entries.count == 2)
  }

  /// A token that cannot be compared.
  struct Opaque: Sendable { var text: String }

  @Test(arguments: [false, true])
  func `a late rejection is no failure once the user has signed in again`(
    isComparable: Bool
  )
    async throws
  {
    let (rejection, count) = (Gate(), Guarded(0))
    let base = ClosureTransport { count, request, receiver in
      if count == 1 { try await rejection.wait() }
      let isOld = request.authorization == "a1"
      try receiver.take(request, status: isOld ? 401 : 200, request.authorization)
    }
    @Sendable func next() throws -> Int {
      let number = count.withLock { count in
        count += 1
        return count
      }
      if number > 1 { throw NotSignedIn() }
      return number
    }
    let ended = ended
    let url = try #require(URL(string: "https://api.example"))
    let comparable = Multiplexer<TestToken> { TestToken(account: "a", number: try next()) }
    let opaque = Multiplexer<Opaque> { Opaque(text: "a\(try next())") }
    let one = SignInDesk.transport(over: base, token: comparable, ended: ended)
    let two = TokenTransport<Opaque>(
      base: base,
      origin: url,
      token: opaque,
      account: { _ in "a" },
      authorize: { $0.setValue($1.text, forHTTPHeaderField: "Authorization") },
      onSignedOut: { ended.append("\($0)") }
    )
    @Sendable func get() async throws -> String {
      isComparable
        ? try await SignInDesk.get("https://api.example/", by: one)
        : try await SignInDesk.get("https://api.example/", by: two)
    }
    let late = Task { try await get() }
    await rejection.arrivals(1)
    await #expect(throws: NotSignedIn.self) { try await get() }
    #expect(ended.entries.count == 1)
    comparable.store(TestToken(account: "a", number: 7))
    opaque.store(Opaque(text: "a7"))
    rejection.open()
    #expect(try await late.value == "a7")
  }
}
