import Plexus

/// Somebody has ordered something: of interest to whoever listens at that moment.
struct OrderPlaced: Event {
  let dish: String
  let price: Int
}

/// Somebody is not content: waits until somebody has dealt with it.
struct Complaint: PersistentEvent {
  let table: Int

  var persistenceRule: PersistenceRule { .clearImmediately }
}

/// Two subscribers to one event, and another event that waits for its subscriber.
@main
struct Restaurant {
  static func main() async {
    let bus = EventBus()

    // A closure, as long as its token lives. It runs on the actor that it was written on, if any.
    let kitchen = bus.observe(OrderPlaced.self) { order in
      print("kitchen: one \(order.dish)")
    }
    // A stream. It is registered here and now, however late the loop begins.
    let orders = bus.subscribe(to: OrderPlaced.self)
    let bill = Task {
      var total = 0
      for await order in orders.prefix(2) { total += order.price }
      return total
    }

    await bus.postAndWait(OrderPlaced(dish: "soup", price: 7))
    let outcome = await bus.postAndWait(OrderPlaced(dish: "fish", price: 21))
    print("\(outcome.notified) have heard of the last order")
    print("bill: \(await bill.value)")
    kitchen.cancel()

    // Nobody is there who could deal with these two.
    bus.post(Complaint(table: 4))
    bus.post(Complaint(table: 9))
    print("complaints that wait: \(bus.pendingEvents(of: Complaint.self).count)")

    // Whoever comes gets them first, in their order. The first one who does takes them away.
    for await complaint in bus.subscribe(to: Complaint.self).prefix(2) {
      print("manager: table \(complaint.table) gets a dessert")
    }
    print("complaints that wait: \(bus.pendingEvents(of: Complaint.self).count)")
  }
}
