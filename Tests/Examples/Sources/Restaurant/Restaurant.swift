import Plexus

/// A guest has ordered a dish. The event is discarded once all current subscribers have received it.
struct OrderPlaced: Event {
  let dish: String
  let price: Int
}

/// A guest has complained. The event is retained until a subscriber has handled it.
struct Complaint: PersistentEvent {
  let table: Int

  var persistenceRule: PersistenceRule { .clearImmediately }
}

/// Two subscribers to one event, and a persistent event that is retained for a later subscriber.
@main
struct Restaurant {
  static func main() async {
    let bus = EventBus()

    // The handler is registered until its token is released. It runs on the actor to which the closure is isolated.
    let kitchen = bus.observe(OrderPlaced.self) { order in
      print("kitchen: one \(order.dish)")
    }
    // The stream is registered immediately, even if the loop begins later.
    let orders = bus.subscribe(to: OrderPlaced.self)
    let bill = Task {
      var total = 0
      for await order in orders.prefix(2) { total += order.price }
      return total
    }

    await bus.postAndWait(OrderPlaced(dish: "soup", price: 7))
    let outcome = await bus.postAndWait(OrderPlaced(dish: "fish", price: 21))
    print("\(outcome.notified) subscribers received the last order")
    print("bill: \(await bill.value)")
    kitchen.cancel()

    // There is no subscriber yet, so both events are retained.
    bus.post(Complaint(table: 4))
    bus.post(Complaint(table: 9))
    print("pending complaints: \(bus.pendingEvents(of: Complaint.self).count)")

    // A new subscriber receives the retained events first, in order, and thereby handles them.
    for await complaint in bus.subscribe(to: Complaint.self).prefix(2) {
      print("manager: table \(complaint.table) gets a dessert")
    }
    print("pending complaints: \(bus.pendingEvents(of: Complaint.self).count)")
  }
}
