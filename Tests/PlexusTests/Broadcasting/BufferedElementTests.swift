import Plexus
import TestSupport
import Testing

@Suite(.fewAtOnce) struct `An element that is already there` {
  @MainActor @Test(.guarantee(.bufferedReadsStayOnTheActor), arguments: Policy.roomy)
  func `an element that is already there is read from a subscription without leaving the actor`(
    policy: Policy
  ) async {
    let messenger = Messenger<Int>()
    let subscription = messenger.subscription(bufferingPolicy: policy())
    // With more in a row, the loop yields when the clock ticks.
    for number in 0..<15 { messenger.send(number) }
    // It runs as soon as this task leaves the actor.
    let other = Log<Void>()
    let task = Task { @MainActor in other.append(()) }
    var numbers: [Int] = []
    for await number in subscription {
      numbers.append(number)
      if number == 14 { break }
    }
    #expect(other.count == 0)
    #expect(numbers == Array(0..<15))
    await task.value
  }

  @MainActor @Test(.guarantee(.bufferedReadsStayOnTheActor))
  func `an element that is already there is read from states without leaving the actor`() async {
    let publisher = DataPublisher<Int>()
    let states = publisher.subscription()
    let other = Log<Void>()
    let task = Task { @MainActor in other.append(()) }
    var iterator = states.makeAsyncIterator()
    for number in 0..<15 {
      publisher.update(number)
      #expect(await iterator.next()?.value == number)
    }
    #expect(other.count == 0)
    await task.value
  }
}
