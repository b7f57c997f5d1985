import TestSupport
import Testing

@testable import DepartureBoard

@Suite(.fewAtOnce) struct `A clock time` {
  @Test(arguments: [
    ("0", 0), ("5", 5), ("30", 30), ("500", 300), ("0500", 300), ("1259", 779), ("2359", 1439),
    ("2400", 1440),
  ])
  func `hhmm is parsed without leading zeros`(text: String, minutes: Int) {
    #expect(ClockTime(hhmm: text)?.minutes == minutes)
  }

  @Test(arguments: ["", "60", "2401", "2460", "2500", "99999", "-5", "+5", "5.0", "x", "12:00"])
  func `invalid hhmm is rejected`(text: String) {
    #expect(ClockTime(hhmm: text) == nil)
  }

  @Test(arguments: [("00:00", 0), ("9:05", 545), ("09:05", 545), ("23:59", 1439), ("24:00", 1440)])
  func `HH:MM is parsed`(text: String, minutes: Int) {
    #expect(ClockTime(text)?.minutes == minutes)
  }

  @Test(arguments: [
    "", ":", "9", "0905", "9:5", "9:60", "24:01", "25:00", "-1:00", "+9:00", "9:05:00", "09:0x",
    "109:00", " 9:00", "९:00",
  ])
  func `invalid HH:MM is rejected`(text: String) {
    #expect(ClockTime(text) == nil)
  }

  @Test(arguments: [
    (0, "00:00"), (545, "09:05"), (1439, "23:59"), (1440, "00:00"), (1445, "00:05"), (-1, "23:59"),
    (-1440, "00:00"),
  ])
  func `it is formatted as HH:MM, regardless of the day`(minutes: Int, text: String) {
    #expect(ClockTime(minutes: minutes).description == text)
  }

  @Test(arguments: [(0, 0), (59, 0), (60, 1), (3599, 59), (86_400, 1440), (-1, -1), (-60, -1)])
  func `it is rounded down to the minute`(seconds: Int, minutes: Int) {
    #expect(ClockTime(sinceMidnight: .seconds(seconds)).minutes == minutes)
  }

  @Test func `a time after midnight is later than one before`() {
    let late = ClockTime(minutes: 1435)
    #expect(late + 10 > late)
    #expect((late + 10).description == "00:05")
    #expect((late + 10).isSameOnTheClock(as: ClockTime(minutes: 5)))
    #expect(!(late + 10).isSameOnTheClock(as: late))
    #expect((late + 10).hour == 0)
    #expect(late - 1435 == ClockTime(minutes: 0))
    #expect((late + 10).sinceMidnight == .seconds(1445 * 60))
  }
}

@Suite(.fewAtOnce) struct `A calendar day` {
  private func airport(_ zone: String, _ offset: Int) -> Airport {
    Airport(
      code: "XXX",
      name: "",
      latitude: 0,
      longitude: 0,
      altitude: 0,
      utcOffset: offset,
      timeZone: zone
    )
  }

  @Test(arguments: [
    ("America/New_York", -5, "12:00"), ("America/Chicago", -6, "11:00"),
    ("America/Denver", -7, "10:00"), ("America/Phoenix", -7, "10:00"),
    ("America/Los_Angeles", -8, "09:00"), ("Pacific/Honolulu", -10, "07:00"),
    ("No/Such_Zone", -8, "09:00"),
  ])
  func `noon in a New York winter is earlier farther west`(zone: String, offset: Int, local: String)
  {
    let noon = ClockTime(minutes: 720)
    let time = CalendarDay.blizzard.localTime(of: noon, at: airport(zone, offset))
    #expect(time.description == local)
  }

  @Test func `summer time counts where it is kept`() {
    let summer = CalendarDay(year: 2013, month: 7, day: 8)
    let noon = ClockTime(minutes: 720)
    #expect(summer.localTime(of: noon, at: airport("America/Denver", -7)).description == "10:00")
    #expect(summer.localTime(of: noon, at: airport("America/Phoenix", -7)).description == "09:00")
    #expect(summer.localTime(of: noon, at: airport("Pacific/Honolulu", -10)).description == "06:00")
  }

  @Test func `a landing after midnight is on the next day`() {
    let late = ClockTime(minutes: 1500)
    let time = CalendarDay.blizzard.localTime(of: late, at: airport("America/New_York", -5))
    #expect(time.minutes == 1500)
    #expect(time.description == "01:00")
  }
}
