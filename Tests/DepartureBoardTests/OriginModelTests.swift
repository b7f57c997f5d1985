import Foundation
import Testing

@testable import DepartureBoard

@Suite struct `The routes of the origin` {
  let routes: DayRoutes

  init() throws {
    routes = DayRoutes(day: try Day.bundled())
  }

  private func text(_ path: String) throws -> String? {
    try routes.body(for: path).map { String(decoding: $0, as: UTF8.self) }
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

  @Test func `answer what can be read back`() throws {
    let decoder = JSONDecoder()
    for airport in routes.day.airports.values {
      let body = try #require(try routes.body(for: "/airports/\(airport.code)"))
      #expect(try decoder.decode(Airport.self, from: body) == airport)
    }
    for (key, weather) in routes.day.weather {
      let body = try #require(try routes.body(for: "/weather/\(key)"))
      #expect(try decoder.decode(Weather.self, from: body) == weather)
    }
  }

  @Test(arguments: [
    "", "/", "/airlines", "/airlines/", "/airlines/XX", "/airlines/UA/", "airlines/UA",
    "/aircraft/N0", "/airports/PSE", "/airports/ewr", "/weather/EWR", "/weather/EWR/",
    "/weather/EWR/24", "/weather/EWR/09", "/weather/EWR/+9", "/weather/EWR/9/x", "/weather/XXX/9",
    "/flights/1", "//airlines/UA",
  ])
  func `know nothing of other paths`(path: String) throws {
    #expect(try routes.body(for: path) == nil)
  }
}
