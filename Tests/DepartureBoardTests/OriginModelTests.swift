import Foundation
import TestSupport
import Testing

@testable import DepartureBoard

@Suite(.fewAtOnce) struct `The routes of the origin` {
  let routes: DayRoutes

  init() throws {
    routes = DayRoutes(day: try Day.bundled())
  }

  private func text(_ path: String) throws -> String? {
    try routes.answer(for: path).map { String(decoding: $0.body, as: UTF8.self) }
  }

  @Test func `answer in JSON`() throws {
    #expect(try text("/airlines/UA") == #"{"carrier":"UA","name":"United Air Lines Inc."}"#)
    #expect(
      try text("/aircraft/N10575")
        == #"{"engines":2,"manufacturer":"EMBRAER","model":"EMB-145LR","seats":55,"#
        + #""tailNumber":"N10575","year":2002}"#
    )
    #expect(try text("/airports/ALB")?.contains(#""name":"Albany Intl""#) == true)
    #expect(try text("/weather/EWR/9")?.contains(#""hour":9"#) == true)
  }

  @Test func `answer with values that can be decoded`() throws {
    let decoder = JSONDecoder()
    for airport in routes.day.airports.values {
      let answer = try #require(try routes.answer(for: "/airports/\(airport.code)"))
      #expect(try decoder.decode(Airport.self, from: Data(answer.body)) == airport)
    }
    for (key, weather) in routes.day.weather {
      let answer = try #require(try routes.answer(for: "/weather/\(key)"))
      #expect(try decoder.decode(Weather.self, from: Data(answer.body)) == weather)
    }
    for carrier in routes.day.airlines.keys {
      let answer = try #require(try routes.answer(for: "/badges/\(carrier).ppm"))
      #expect(try Pixmap(ppm: answer.body).width == 8)
    }
  }

  @Test func `answer with a version and a lifetime of the weather`() throws {
    let tags = try routes.day.weather.keys.map { key in
      let answer = try #require(try routes.answer(for: "/weather/\(key)"))
      #expect(answer.cacheControl == "max-age=1200")
      #expect(try routes.answer(for: "/weather/\(key)") == answer)
      return try #require(answer.entityTag)
    }
    #expect(Set(tags).count == routes.day.weather.count)
    #expect(tags.allSatisfy { $0.hasPrefix("\"") && $0.hasSuffix("\"") && $0.count > 10 })
    #expect(try routes.answer(for: "/airlines/UA")?.entityTag == nil)
  }

  @Test(arguments: [
    "", "/", "/airlines", "/airlines/", "/airlines/XX", "/airlines/UA/", "airlines/UA",
    "/aircraft/N0", "/airports/PSE", "/airports/ewr", "/weather/EWR", "/weather/EWR/",
    "/weather/EWR/24", "/weather/EWR/09", "/weather/EWR/+9", "/weather/EWR/9/x", "/weather/XXX/9",
    "/flights/1", "//airlines/UA", "/badges/UA", "/badges/.ppm", "/badges/XX.ppm",
    "/badges/UA.ppm/",
  ])
  func `do not match other paths`(path: String) throws {
    #expect(try routes.answer(for: path) == nil)
  }
}
