import TestSupport
import Testing

@testable import DepartureBoard

@Suite(.fewAtOnce) struct `The day` {
  private let day: Day

  init() throws {
    day = try Day()
  }

  @Test func `the day has 930 flights, of which 472 were cancelled`() {
    #expect(day.flights.count == 930)
    #expect(day.flights.count { $0.departed == nil } == 472)
    #expect(day.flights.map(\.id) == Array(0..<930))
  }

  @Test func `the day has 731 different keys to look up`() {
    let airports = Set(day.flights.map(\.origin)).union(day.flights.map(\.destination))
    #expect(Set(day.flights.map(\.carrier)).count == 15)
    #expect(Set(day.flights.compactMap(\.tailNumber)).count == 574)
    #expect(airports.count == 89)
    #expect(Set(day.flights.map(\.weatherKey)).count == 53)
    #expect(day.flights.count { $0.tailNumber == nil } == 161)
    #expect(day.flights.allSatisfy { day.airlines[$0.carrier] != nil })
    #expect(day.flights.allSatisfy { day.weather[$0.weatherKey] != nil })
  }

  @Test func `the day has the times of its flights, also after midnight`() throws {
    let first = try #require(day.flights.first)
    #expect(first.designator == "US 1117" && first.weatherKey == "EWR/5")
    #expect(first.scheduled == .at("05:00") && first.departed == .at("04:58"))
    #expect(first.minutesInTheAir == 99)
    #expect(day.flights.allSatisfy { ClockTime.range.contains($0.departed ?? $0.scheduled) })
  }

  @Test func `the day has names of airlines, airports and aircraft in common use`() {
    #expect(day.airlines["US"]?.name == "US Airways")
    #expect(day.airlines["AA"]?.name == "American Airlines")
    #expect(day.airports["CLT"]?.name == "Charlotte Douglas")
    #expect(day.airports["MHT"]?.name == "Manchester")
    #expect(day.airports["HNL"]?.timeZone == "Pacific/Honolulu")
    let aircraft = Set(day.aircraft.values.map(\.name))
    for name in [
      "Embraer EMB-145LR", "Airbus A320-232", "McDonnell Douglas MD-88", "Bombardier CL-600-2D24",
    ] {
      #expect(aircraft.contains(name))
    }
    #expect(day.weather["EWR/9"]?.name == "35°F 12mph 1mi")
    #expect(Weather(temperature: nil, windSpeed: nil, visibility: 0.25).name == "0.3mi")
  }
}
