import Testing

@testable import PlexusNetworking

@Suite struct `The freshness of an answer` {
  private func freshness(_ fields: [String: String], delay: Int = 0) -> HTTPFreshness {
    HTTPFreshness(now: 784_111_777, delay: delay) { fields[$0] }
  }

  @Test(arguments: [
    "Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994",
  ])
  func `dates are read in all three forms`(text: String) {
    #expect(HTTPDate.seconds(text) == 784_111_777)
  }

  @Test(arguments: [
    "", "0", "soon", "Sun, 06 Foo 1994 08:49:37 GMT", "Sun, 40 Nov 1994 08:49:37 GMT",
  ])
  func `what is no date is none`(text: String) {
    #expect(HTTPDate.seconds(text) == nil)
  }

  @Test func `a leap day and the first day are counted`() {
    #expect(HTTPDate.seconds("Thu, 29 Feb 2024 00:00:00 GMT") == 1_709_164_800)
    #expect(HTTPDate.seconds("Thu, 01 Jan 1970 00:00:00 GMT") == 0)
  }

  @Test func `max-age counts less the age and the delay, and wins over Expires`() {
    let fields = [
      "Cache-Control": "public, MAX-AGE=\"60\"", "Age": "20",
      "Expires": "Sun, 06 Nov 1994 09:49:37 GMT",
    ]
    #expect(freshness(fields, delay: 3).lifetime == 37)
    #expect(freshness(["Cache-Control": "max-age=10", "Age": "20"]).lifetime == 0)
    #expect(freshness(["Cache-Control": "max-age=ten"]).lifetime == 0)
    #expect(freshness(["Cache-Control": "max-age=99999999999999999999"]).lifetime == 2_147_483_648)
  }

  @Test func `Expires counts from the date of the answer`() {
    let expires = "Sun, 06 Nov 1994 09:49:37 GMT"
    #expect(
      freshness(["Expires": expires, "Date": "Sun, 06 Nov 1994 09:49:00 GMT"]).lifetime == 37
    )
    #expect(freshness(["Expires": expires]).lifetime == 3600)
    #expect(freshness(["Expires": "0"]).lifetime == 0)
  }

  @Test func `no-cache and no-store make it stale at once, and nothing said is nothing known`() {
    #expect(freshness(["Cache-Control": "no-cache, max-age=9"]).lifetime == 0)
    #expect(freshness(["Cache-Control": "max-age=9, no-store"]).lifetime == 0)
    #expect(freshness(["Cache-Control": "max-age=9, no-store"]).noStore)
    #expect(freshness([:]).lifetime == nil)
    #expect(freshness(["Cache-Control": "x=\"no-store, max-age=1\", max-age=7"]).lifetime == 7)
  }

  @Test func `Retry-After is seconds or a date`() {
    #expect(HTTPFreshness.retryAfter("120", now: 5) == 120)
    #expect(HTTPFreshness.retryAfter("Sun, 06 Nov 1994 08:49:37 GMT", now: 784_111_770) == 7)
    #expect(HTTPFreshness.retryAfter("Sun, 06 Nov 1994 08:49:37 GMT", now: 784_111_790) == 0)
    #expect(HTTPFreshness.retryAfter("-1", now: 5) == nil)
  }

  @Test func `a validator survives as text, and a foreign one is an entity tag`() {
    var validator = HTTPValidator()
    validator.entityTag = "W/\"a=b\""
    validator.lastModified = "Sun, 06 Nov 1994 08:49:37 GMT"
    validator.staleFrom = 7
    validator.staleIfError = 60
    validator.forbidsStale = true
    #expect(HTTPValidator(text: validator.text) == validator)
    #expect(HTTPValidator(text: HTTPValidator().text) == HTTPValidator())
    #expect(HTTPValidator(text: "\"v1\"").entityTag == "\"v1\"")
  }
}
