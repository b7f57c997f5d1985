import Plexus
import PlexusSharedTesting
import PlexusTesting
import TestSupport
import Testing

extension `Every order of jobs` {
  @Suite(.serialized)
  struct `Events between nodes, in every order` {
    private struct Note: Event, Codable {
      let number: Int
    }

    /// A process with a bus, which records the notes.
    private final class Node: Sendable {
      let bus: EventBus
      let link: EventMemoryNode
      let notes: Log<Int>
      let reports = Log<Bool>()
      private let bag = ObservationBag()

      init(_ engine: EventMemory, _ clock: ManualClock, _ notes: Log<Int> = Log()) {
        bus = EventBus(clock: clock)
        link = engine.node()
        self.notes = notes
        bus.observe(Note.self) { notes.append($0.number) }.store(in: bag)
        bus.observe(LinkReport.self) { [reports] report in
          if case .connected = report.content { reports.append(true) }
        }
        .store(in: bag)
      }

      func connect(_ mode: LinkMode) -> ObservationToken {
        bus.connect(Note.self, as: "notes", over: link, mode)
      }

      func connected() async {
        await reports.first(1)
      }
    }

    private static let group = LinkMode.oneNode(
      group: "group",
      retryAfter: .seconds(10),
      attempts: 3
    )

    @Test(.guarantee(.linksHoldInEveryOrder))
    func `a node that is cut off gets every event once, in order`() throws {
      try forEveryInterleaving(deviations: 2) {
        let clock = ManualClock()
        let engine = EventMemory(clock: clock)
        let (sender, receiver) = (Node(engine, clock), Node(engine, clock))
        let tokens = [sender.connect(.publishOnly), receiver.connect(.everyNode())]
        await receiver.connected()
        let publishing = Task {
          for number in 1...3 { try await sender.bus.publish(Note(number: number)) }
        }
        receiver.link.cutOff()
        await hop()
        receiver.link.reconnect()
        try await publishing.value
        let received = await receiver.notes.first(3)
        guard received == [1, 2, 3] else { throw Wrong(what: "\(received)") }
        withExtendedLifetime(tokens) {}
      }
    }

    @Test(.guarantee(.linksHoldInEveryOrder))
    func `a group handles every event although one of its nodes leaves`() throws {
      try forEveryInterleaving(deviations: 2) {
        let clock = ManualClock()
        let engine = EventMemory(clock: clock)
        let notes = Log<Int>()
        let (leaver, heir) = (Node(engine, clock, notes), Node(engine, clock, notes))
        let (first, second) = (leaver.connect(Self.group), heir.connect(Self.group))
        let publishing = Task {
          for number in 1...2 { try await heir.bus.publish(Note(number: number)) }
        }
        await hop()
        first.cancel()
        try await publishing.value
        await notes.wait { Set($0) == [1, 2] }
        withExtendedLifetime(second) {}
      }
    }

    @Test(.guarantee(.linksHoldInEveryOrder))
    func `a node whose token was cancelled posts nothing that is published afterwards`()
      throws
    {
      try forEveryInterleaving(deviations: 2) {
        let clock = ManualClock()
        let engine = EventMemory(clock: clock)
        let (sender, receiver) = (Node(engine, clock), Node(engine, clock))
        let (first, second) = (sender.connect(.everyNode()), receiver.connect(.everyNode()))
        await receiver.connected()
        let posted = receiver.bus.subscription(to: Note.self)
        let publishing = Task { try await sender.bus.publish(Note(number: 1)) }
        await hop()
        second.cancel()
        try await publishing.value
        try await sender.bus.publish(Note(number: 2))
        receiver.bus.post(Note(number: 3))
        for await note in posted {
          if note.number == 3 { break }
          guard note.number == 1 else { throw Wrong(what: "\(note.number) after the end") }
        }
        withExtendedLifetime(first) {}
      }
    }
  }
}
