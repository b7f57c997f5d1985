import TestSupport
import Testing

@testable import Plexus

@Suite(.fewAtOnce) struct `Flights to launch` {
  @Test(arguments: 0..<5)
  func `flights to launch keep their order, and a single one is stored without a list`(count: Int) {
    let flights = (0..<count).map { _ in Flight() }
    var list = CacheEffects.FlightList.none
    for flight in flights { list.append(flight) }
    #expect(list.isEmpty == (count == 0))
    if case .one(let flight) = list { #expect([flight] == flights) } else { #expect(count != 1) }
    #expect(list.array == flights)
  }
}
