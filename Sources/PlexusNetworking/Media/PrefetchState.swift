/// The running and waiting elements of a prefetcher.
///
/// Invariants:
///
/// - No more elements run than the limit allows, and none while it is paused.
/// - An element waits or runs once, however often it was added.
struct PrefetchState<Element: Hashable & Sendable>: Sendable {
  /// An element that begins to run.
  struct Start: Sendable {
    let id: Int
    let element: Element
  }

  let limit: Int
  private(set) var isPaused = false
  private struct Place: Sendable {
    let element: Element
    let number: Int
  }

  /// The elements in their order from the position on; places at which no element waits are skipped.
  private var order: [Place] = []
  private var position = 0
  /// The elements that wait, with the numbers of their places.
  private var waiting: [Element: Int] = [:]
  private var lastPlace = 0
  private var running: [Int: Element] = [:]
  private var lastID = 0

  init(limit: Int) {
    self.limit = limit
  }

  /// Adds elements at the end.
  mutating func add(_ elements: [Element]) {
    let running = Set(running.values)
    for element in elements where !running.contains(element) && waiting[element] == nil {
      order.append(place(element))
    }
    tidy()
  }

  /// Begins the next element, if there is one and it may run.
  mutating func next() -> Start? {
    guard !isPaused, running.count < limit else { return nil }
    while position < order.count {
      let place = order[position]
      position += 1
      guard waiting[place.element] == place.number else { continue }
      waiting[place.element] = nil
      lastID += 1
      running[lastID] = place.element
      return Start(id: lastID, element: place.element)
    }
    order = []
    position = 0
    return nil
  }

  /// An element has ended.
  mutating func finish(_ id: Int) {
    running[id] = nil
  }

  /// Removes elements.
  ///
  /// - Returns: The identifiers of the running ones.
  mutating func cancel(_ elements: Set<Element>) -> [Int] {
    for element in elements { waiting[element] = nil }
    tidy()
    let ids = running.filter { elements.contains($0.value) }.map(\.key)
    for id in ids { running[id] = nil }
    return ids
  }

  /// Removes all elements.
  ///
  /// - Returns: The identifiers of the running ones.
  mutating func cancelAll() -> [Int] {
    defer { running = [:] }
    (order, position, waiting) = ([], 0, [:])
    return Array(running.keys)
  }

  /// Stops all elements until ``resume()``; the running ones wait again, before all others.
  ///
  /// - Returns: The identifiers of the stopped ones.
  mutating func pause() -> [Int] {
    isPaused = true
    let stopped = running.sorted { $0.key < $1.key }
    running = [:]
    order = stopped.map { place($0.value) } + order[position...]
    position = 0
    return stopped.map(\.key)
  }

  /// Ends the pause.
  mutating func resume() {
    isPaused = false
  }

  /// The numbers of elements that wait and that run.
  var counts: (waiting: Int, running: Int) { (waiting.count, running.count) }

  /// The number of places, including places that no element waits at.
  var entryCount: Int { order.count }

  /// Gives an element a new place, which it waits at.
  private mutating func place(_ element: Element) -> Place {
    lastPlace += 1
    waiting[element] = lastPlace
    return Place(element: element, number: lastPlace)
  }

  /// Keeps the order from growing with places that no element waits at.
  private mutating func tidy() {
    guard order.count > 2 * waiting.count + 16 else { return }
    order = order[position...].filter { waiting[$0.element] == $0.number }
    position = 0
  }
}
