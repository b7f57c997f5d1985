import Plexus
import TestSupport
import Testing

@Suite(.fewAtOnce) struct `The values of stores` {
  @Test(.guarantee(.publicTypesAreSendable)) func `the types of stores are sendable`() {
    func requireSendable<Value: Sendable>(_ type: Value.Type) {}
    requireSendable(Store<Int, Int>.self)
    requireSendable(PageStore<Int, Int, Int, Int>.self)
    requireSendable(PageStore<Int, Int, Int, Int>.Element.self)
    requireSendable(StateConsumer<Int>.self)
    requireSendable(Middleware<Int, Int>.self)
    requireSendable(Middleware<Int, Int>.Context.self)
    requireSendable(Reducer<Int, Int>.self)
    requireSendable(Change<Int>.self)
    requireSendable(ObservedValue<Int>.self)
  }

  @Test func `changes are equal if their old and new values are`() {
    #expect(Change(old: 1, new: 2) == Change(old: 1, new: 2))
    #expect(Change(old: 1, new: 2) != Change(old: nil, new: 2))
    #expect(Change(old: 1, new: 2) != Change(old: 1, new: 3))
    #expect(Set([Change(old: nil, new: 1), Change(old: nil, new: 1)]).count == 1)
  }
}
