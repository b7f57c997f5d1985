import TestSupport
import Testing

@testable import DepartureBoard

@Suite(.fewAtOnce) struct `The carried day` {
  let day: Day

  init() throws {
    day = try Day.bundled()
  }

  @Test func `has 930 flights of which 472 were cancelled`() {
    #expect(day.flights.count == 930)
    #expect(day.flights.count { $0.departed == nil } == 472)
    #expect(day.flights.map(\.id) == Array(0..<930))
  }

  @Test func `has 731 different keys to look up`() {
    let airports = Set(day.flights.map(\.origin)).union(day.flights.map(\.destination))
    #expect(Set(day.flights.map(\.carrier)).count == 15)
    #expect(Set(day.flights.compactMap(\.tailNumber)).count == 574)
    #expect(airports.count == 89)
    #expect(Set(day.flights.map(\.weatherKey)).count == 53)
    #expect(day.flights.count { $0.tailNumber == nil } == 161)
  }

  @Test func `has every airline and the weather of every flight`() {
    #expect(day.flights.allSatisfy { day.airlines[$0.carrier] != nil })
    #expect(day.flights.allSatisfy { day.weather[$0.weatherKey] != nil })
    #expect(day.weather.count == 72)
  }

  @Test func `has names in common use`() {
    #expect(day.airlines["US"]?.displayName == "US Airways")
    #expect(day.airlines["AA"]?.displayName == "American Airlines")
    #expect(day.airports["CLT"]?.displayName == "Charlotte Douglas")
    #expect(day.airports["MHT"]?.displayName == "Manchester")
    #expect(day.aircraft["N10575"]?.displayName == "Embraer EMB-145LR")
    let makers = Set(day.aircraft.values.map(\.displayName))
    #expect(makers.contains("Airbus A320-232"))
    #expect(makers.contains("McDonnell Douglas MD-88"))
    #expect(makers.contains("Bombardier CL-600-2D24"))
  }

  @Test func `has weather descriptions of a few characters`() {
    let key = WeatherKey(origin: "EWR", hour: 9)
    #expect(day.weather[key]?.displayName == "35°F 12mph 1mi")
    let unmeasured = Weather(
      origin: "EWR",
      hour: 0,
      temperature: nil,
      windSpeed: nil,
      precipitation: 0,
      visibility: 0.25
    )
    #expect(unmeasured.displayName == "0.3mi")
  }
}

@Suite(.fewAtOnce) struct `The key of the weather` {
  @Test func `is parsed from its description`() {
    let key = WeatherKey(origin: "EWR", hour: 9)
    #expect(key.description == "EWR/9")
    #expect(WeatherKey("EWR/9") == key)
  }

  @Test(arguments: ["", "EWR", "EWR/", "EWR/x", "EWR/9/1"])
  func `rejects other descriptions`(description: String) {
    #expect(WeatherKey(description) == nil)
  }
}

@Suite(.fewAtOnce) struct `A flight of the timetable` {
  private func flight(_ row: String) throws -> Flight {
    let header =
      "sched_dep_time,dep_time,dep_delay,carrier,flight,tailnum,origin,dest,air_time,distance"
    let table = try CSVTable(name: "flights.csv", text: "\(header)\n\(row)\n")
    return try Flight(try #require(table.rows.first), id: 7)
  }

  @Test func `has all values of its row`() throws {
    let flight = try flight("500,458,-2,US,1117,N197UW,EWR,CLT,99,529")
    #expect(
      flight
        == Flight(
          id: 7,
          scheduled: ClockTime(minutes: 300),
          departed: ClockTime(minutes: 298),
          carrier: "US",
          number: 1117,
          tailNumber: "N197UW",
          origin: "EWR",
          destination: "CLT",
          minutesInTheAir: 99
        )
    )
    #expect(flight.designator == "US 1117")
    #expect(flight.weatherKey == WeatherKey(origin: "EWR", hour: 5))
  }

  @Test func `is cancelled without a time of departure`() throws {
    let flight = try flight("2245,NA,NA,B6,128,,JFK,BTV,NA,266")
    #expect(flight.departed == nil)
    #expect(flight.tailNumber == nil)
    #expect(flight.minutesInTheAir == nil)
  }

  @Test func `can depart after midnight`() throws {
    let flight = try flight("2355,25,30,B6,128,N1,JFK,BTV,NA,266")
    #expect(flight.departed == ClockTime(minutes: 24 * 60 + 25))
    #expect(try self.flight("2355,2400,5,B6,1,N1,JFK,BTV,NA,1").departed?.minutes == 1440)
  }

  @Test func `can depart before the midnight for which it was scheduled`() throws {
    #expect(try flight("0,2355,-5,B6,1,N1,JFK,BTV,NA,1").departed?.minutes == -5)
  }

  @Test(arguments: [
    ("500,458,2,US,1117,N1,EWR,CLT,99,529", "is not the delay from 05:00 to 04:58"),
    ("500,458,,US,1117,N1,EWR,CLT,99,529", "\"dep_delay\" must not be empty"),
    (",458,-2,US,1117,N1,EWR,CLT,99,529", "\"sched_dep_time\" must not be empty"),
    ("500,458,-2,US,x,N1,EWR,CLT,99,529", "\"x\" in the column \"flight\" is not a whole number"),
    ("500,4x8,-2,US,1,N1,EWR,CLT,99,529", "is not a clock time (hhmm)"),
  ])
  func `with an invalid row is an error`(row: String, message: String) {
    let error = #expect(throws: CSVError.self) { try flight(row) }
    #expect(error?.description.contains(message) == true)
    #expect(error?.line == 2)
  }
}
