import Plexus
import TestSupport
import Testing

/// Posts and subscriptions on many threads, also for the thread sanitizer.
@Suite(.fewAtOnce, .serialized) struct `Event bus stress` {
  struct Message: PersistentEvent, Hashable {
    let sender: Int
    let number: Int
    var rule: PersistenceRule?

    var persistenceRule: PersistenceRule { rule ?? .clearImmediately }

    var persistence: EventPersistence {
      if let rule { .persistent(rule, limit: 100) } else { .none }
    }
  }

  /// Whether the numbers of each sender are consecutive.
  func isGapless(_ messages: [Message]) -> Bool {
    Dictionary(grouping: messages, by: \.sender).values.allSatisfy { messages in
      zip(messages, messages.dropFirst()).allSatisfy { $1.number == $0.number + 1 }
    }
  }

  @Test(.guarantee(.eventsHaveOneOrderPerScope), arguments: [nil] + PersistenceRule.allCases)
  func `posts of many threads reach all subscribers in one order, while others come and go`(
    rule: PersistenceRule?
  ) async {
    let (bus, senders, messages) = (EventBus(), 4, 300)
    let stream = bus.subscription(to: Message.self)
    let log = Log<Message>()
    let other = Log<Message>()
    // Under `clearImmediately` only the stream, which is first, receives events.
    let tokens = [
      bus.observe(Message.self) { message in
        log.append(message)
        return .failed
      },
      bus.observe(Message.self) { message async in
        other.append(message)
        return .failed
      },
    ]
    await withTaskGroup { group in
      for sender in 0..<senders {
        group.addTask {
          for number in 0..<messages {
            bus.post(Message(sender: sender, number: number, rule: rule))
          }
        }
      }
      for visitor in 0..<4 {
        group.addTask {
          for round in 0..<100 {
            switch (visitor + round) % 4 {
            case 0:
              let visit = bus.subscription(to: Message.self)
              _ = bus.subscriberCount(for: Message.self)
              withExtendedLifetime(visit) {}
            case 1: bus.observe(Message.self) { _ in }.cancel()
            case 2: bus.observe(Message.self) { _ async in .failed }.cancel()
            default:
              bus.observe(id: visitor, Message.self, replacing: true) { _ in }
              bus.removeObserver(id: visitor)
            }
          }
        }
      }
    }
    await bus.postAndWait(Message(sender: -1, number: 0))
    let read = await stream.first(senders * messages + 1)
    #expect(read.count == senders * messages + 1)
    #expect(isGapless(read))
    if rule != .clearImmediately {
      #expect(log.entries == read)
      #expect(other.entries == read)
    }
    #expect(bus.subscriberCount(for: Message.self) == 3)
    withExtendedLifetime(tokens) {}
  }

  @Test func `under clearImmediately an event is handled again only if its handler was cancelled`()
    async
  {
    let (bus, log) = (EventBus(), Log<Int>())
    await withTaskGroup { group in
      for sender in 0..<2 {
        group.addTask {
          for number in 0..<300 { bus.post(Notice(sender * 1000 + number, .clearImmediately)) }
        }
      }
      for _ in 0..<4 {
        group.addTask {
          for round in 0..<100 {
            let token = bus.observe(Notice.self) { notice in
              guard notice.number % 3 != 0 || round == 99 else { return .failed }
              log.append(notice.number)
              return .handledSuccessfully
            }
            if round % 3 == 0 { await bus.settle() }
            token.cancel()
          }
        }
      }
    }
    let last = bus.observe(Notice.self) { notice in
      if notice.number >= 0 { log.append(notice.number) }
      return .handledSuccessfully
    }
    await bus.settle()
    #expect(bus.pendingNumbers() == [])
    let handled = log.entries.filter { $0 >= 0 }
    #expect(Set(handled).sorted() == Array(0..<300) + Array(1000..<1300))
    // The result of a handler that is cancelled before it returns counts as a failure: of one offer at most.
    #expect(handled.count <= 600 + 400)
    withExtendedLifetime(last) {}
  }

  @Test func `scopes are created and removed by many threads without losing an event`() async {
    let bus = EventBus()
    await withTaskGroup(of: Int.self) { group in
      for _ in 0..<4 {
        group.addTask {
          var lost = 0
          for number in 0..<500 {
            let scope = EventScope(number % 7)
            let stream = bus.subscription(to: Message.self, scope: scope)
            bus.post(Message(sender: 0, number: number), scope: scope)
            if await stream.first(1).isEmpty { lost += 1 }
            bus.post(Message(sender: 1, number: number, rule: .neverClear), scope: scope)
            if bus.pendingEvents(of: Message.self, scope: scope).count > 100 { lost += 1 }
            bus.removePendingEvents(of: Message.self, scope: scope)
          }
          return lost
        }
      }
      for await lost in group { #expect(lost == 0) }
    }
    for number in 0..<7 {
      #expect(bus.subscriberCount(for: Message.self, scope: EventScope(number)) == 0)
    }
  }
}
