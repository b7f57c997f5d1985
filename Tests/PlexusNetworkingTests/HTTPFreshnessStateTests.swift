import Plexus
import TestSupport
import Testing

@testable import PlexusNetworking

@Suite(.fewAtOnce) struct `The freshness of an answer` {
  private func freshness(_ fields: [String: String], delay: Int64 = 0) -> HTTPFreshness {
    HTTPFreshness(now: 784_111_777, delay: delay) { fields[$0] }
  }

  @Test(arguments: [
    "Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994",
  ])
  func `dates are read in all three forms`(text: String) {
    #expect(HTTPDate.seconds(text) == 784_111_777)
  }

  @Test(
    .guarantee(.invalidDatesAreStale),
    arguments: [
      "", "0", "-1", "soon", "Sun, 06 Foo 1994 08:49:37 GMT", "Sun, 40 Nov 1994 08:49:37 GMT",
      "Sun, 06 Nov 1994 08:49:37 +0100", "Sun, 06 Nov 1994 08:49:37 PST",
      "Sun, 06 Nov 99999 08:49:37 GMT", "Sun, 06 Nov 1994 24:00:00 GMT",
      "Sun, 06 Nov 1994 08:49:37 UTC", "Sun, 06 Nov 94 08:49:37 GMT",
      "Sun 06 Nov 1994 08:49:37 GMT",
      "Sun, 06  Nov  1994 08:49:37 GMT", "Sun, 06-Nov-1994 08:49:37 GMT",
      "Sun, 06 Nov 1994 08.49.37 GMT", "Sun, 6 Nov 1994 08:49:37 GMT",
      "Sun, 06 Nov 1994 8:49:37 GMT", "Sun, 06 Nov 1994 08:49 GMT", "Sun, 06 Nov 1994 08:49:37",
      "06 Nov 1994 08:49:37 GMT", "Foo, 06 Nov 1994 08:49:37 GMT", "Sun, 31 Feb 1994 08:49:37 GMT",
      "Sun, 29 Feb 1900 08:49:37 GMT", "Sun, 00 Nov 1994 08:49:37 GMT",
      "Sunday, 06-Nov-1994 08:49:37 GMT", "Sun, 06-Nov-94 08:49:37 GMT", "Sun Nov 6 08:49:37 1994",
      "Sun Nov 06 08:49:37 1994 GMT", "1994-11-06T08:49:37Z", "784111777",
      "Sun, 06 Nov 1994 08:49:37 GMT, Sun, 06 Nov 1994 08:49:37 GMT",
      "Sun, 06 Nov 1994 08:49:37 GMT;", "Sun, +6 Nov 1994 08:49:37 GMT",
    ]
  )
  func `what is no date is none`(text: String) {
    #expect(HTTPDate.seconds(text) == nil)
  }

  @Test(arguments: [
    "SUN, 06 nov 1994 08:49:37 gmt", "sunday, 06-NOV-94 08:49:37 Gmt", "sun NOV 06 08:49:37 1994",
  ])
  func `dates are read in whatever case`(text: String) {
    #expect(HTTPDate.seconds(text) == 784_111_777)
  }

  @Test func `a year of two digits is less than fifty years ahead`() {
    let text = { (year: Int) in "Sunday, 06-Nov-\(year) 08:49:37 GMT" }
    // The middle of 2026.
    let now: Int64 = 1_782_000_000
    #expect(HTTPDate.seconds(text(94), now: now) == 784_111_777)
    #expect(HTTPDate.seconds(text(76), now: now) == 3_371_878_177)
    #expect(HTTPDate.seconds(text(77), now: now) == 247_654_177)
    // In 2090 the year 10 is 2110.
    #expect((HTTPDate.seconds(text(10), now: 3_800_000_000) ?? 0) > 4_400_000_000)
  }

  @Test(
    .guarantee(.invalidDatesAreStale),
    arguments: [
      "Expires", "Thu, 01 Dec 2050 16:00:00 UTC", "Thu, 18-Aug-2050 02:01:18 GMT",
      "Thu, 18 Aug 2050 2:01:18 GMT", "Thu, 18 Aug 50 02:01:18 GMT", "0", "-1", "",
    ]
  )
  func `an invalid date of expiry is in the past`(text: String) {
    #expect(freshness(["Expires": text]).lifetime == 0)
    #expect(freshness(["Expires": text, "Cache-Control": "max-age=5"]).lifetime == 5)
  }

  @Test func `an invalid date of the answer is none`() {
    let expires = "Sun, 06 Nov 1994 09:49:37 GMT"
    let fields = ["Expires": expires, "Date": "Sun, 06-Nov-1994 09:49:00 GMT"]
    #expect(freshness(fields).lifetime == 3600)
  }

  @Test(
    .guarantee(.invalidDatesAreStale),
    arguments: [
      "max-age='60'", "max-age=60.0", "max-age=+60", "max-age=-1", "max-age=", "max-age",
      "max-age=60s", "max-age=6 0x", "max-age==60",
    ]
  )
  func `a lifetime that is no number is none, and the value stale`(directive: String) {
    #expect(freshness(["Cache-Control": directive]).lifetime == 0)
  }

  @Test(arguments: [
    "max-age=0060", "max-age=\"60\"", "MAX-age=60", "a=b, max-age=60", ",,max-age=60,,",
    "x=\"max-age=1\", max-age=60", "s-maxage=1, max-age=60", "private, max-age=60",
    "max-age=60, proxy-revalidate", "immutable, max-age=60, s-maxage=2",
  ])
  func `a lifetime is found among other directives`(directives: String) {
    #expect(freshness(["Cache-Control": directives]).lifetime == 60)
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

  @Test func `an age is what several fields and the delay say, the greatest of it`() {
    let fields = ["Cache-Control": "max-age=60", "Date": "Sun, 06 Nov 1994 08:49:07 GMT"]
    #expect(freshness(fields).lifetime == 30, "It was made half a minute ago")
    #expect(freshness(fields.merging(["Age": "40"]) { $1 }, delay: 5).lifetime == 15)
    #expect(freshness(fields.merging(["Age": "10"]) { $1 }, delay: 5).lifetime == 30)
    let ahead = fields.merging(["Date": "Sun, 06 Nov 1994 09:49:07 GMT"]) { $1 }
    #expect(freshness(ahead).lifetime == 60, "A clock that is ahead makes nothing younger")
    for (age, lifetime) in [("20, 5", 40), ("-5", 60), ("", 60), ("x", 60), ("1e3", 60)]
      as [(String, Int64)]
    {
      #expect(freshness(["Cache-Control": "max-age=60", "Age": age]).lifetime == lifetime)
    }
    let huge = ["Cache-Control": "max-age=60", "Age": String(repeating: "9", count: 99)]
    #expect(freshness(huge).lifetime == 0)
  }

  @Test func `an overdue value can be used after a failure for less time`() {
    let directives = "max-age=10, stale-while-revalidate=20, stale-if-error=30"
    for (age, lifetime, revalidating, failing) in [
      (0, 10, 20, 30), (10, 0, 20, 30), (25, 0, 5, 15), (99, 0, 0, 0),
    ] as [(Int64, Int64, Int64, Int64)] {
      let freshness = freshness(["Cache-Control": directives, "Age": "\(age)"])
      #expect(freshness.lifetime == lifetime)
      #expect(freshness.staleWhileRevalidate == revalidating)
      #expect(freshness.staleIfError == failing)
      #expect(freshness.overdue == max(0, age - 10))
    }
    let expired = freshness([
      "Expires": "Sun, 06 Nov 1994 08:49:07 GMT", "Date": "Sun, 06 Nov 1994 08:49:37 GMT",
      "Cache-Control": "stale-if-error=40",
    ])
    #expect(expired.lifetime == 0)
    #expect(expired.staleIfError == 10)
    #expect(
      freshness(["Cache-Control": "stale-if-error=-1, stale-while-revalidate"]).directives
        == .init()
    )
  }

  @Test func `quoted texts hide nothing but what is in them`() {
    #expect(freshness(["Cache-Control": #"x="\"", no-store"#]).noStore)
    #expect(freshness(["Cache-Control": #"x="\"", no-store, y="\"""#]).noStore)
    #expect(!freshness(["Cache-Control": #"x="\", no-store""#]).noStore)
    #expect(freshness(["Cache-Control": #"x="\\", no-store"#]).noStore)
    #expect(freshness(["Cache-Control": "x=\"open, no-store"]).noStore)
    #expect(freshness(["Cache-Control": "max-age=5,\u{301}x, no-store"]).noStore)
    #expect(freshness(["Cache-Control": "NO-STORE , max-age = 5"]).noStore)
    #expect(freshness(["Cache-Control": "private=\"a, b\", max-age=5"]).lifetime == 5)
    #expect(freshness(["Cache-Control": "max-age=5, max-age=50"]).lifetime == 5)
    #expect(!freshness(["Cache-Control": "no-storex, xno-store, no-store-x"]).noStore)
  }

  @Test func `must-understand makes no-store a matter of the status`() {
    let fields = ["Cache-Control": "must-understand, no-store, max-age=5"]
    let known = HTTPFreshness(now: 0, status: 200) { fields[$0] }
    #expect(!known.noStore)
    #expect(known.lifetime == 5)
    #expect(HTTPFreshness(now: 0, status: 299) { fields[$0] }.noStore)
  }

  @Test(arguments: ["*", "Accept, *", " * ", "*, Accept"])
  func `what depends on everything is never fresh`(vary: String) {
    let freshness = freshness(["Cache-Control": "max-age=5", "Vary": vary])
    #expect(freshness.lifetime == 0)
    #expect(freshness.mustRevalidate)
    #expect(!self.freshness(["Cache-Control": "max-age=5", "Vary": "Accept"]).mustRevalidate)
  }

  @Test
  func `no-cache and no-store make an answer stale at once, and nothing said is nothing known`() {
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
    validator.cacheControl = "max-age=60, x=\"c=\""
    validator.expires = "Sun, 06 Nov 1994 08:49:37 GMT"
    validator.vary = "Accept, *"
    validator.location = "https://example.org/?u=1"
    validator.staleFrom = 7
    validator.staleIfError = 60
    validator.forbidsStale = true
    validator.leavesLifetimeOpen = true
    #expect(HTTPValidator(text: validator.text) == validator)
    #expect(HTTPValidator(text: HTTPValidator().text) == HTTPValidator())
    #expect(HTTPValidator(text: "\"v1\"").entityTag == "\"v1\"")
    validator.cacheControl = "max-age=60\r\nf=1\ne=\"v2\""
    validator.forbidsStale = false
    let read = HTTPValidator(text: validator.text)
    #expect(read.entityTag == "W/\"a=b\"", "No field can pass for another one")
    #expect(!read.forbidsStale)
  }
}
