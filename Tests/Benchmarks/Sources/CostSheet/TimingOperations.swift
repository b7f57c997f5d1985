import Plexus

/// Operations of debouncers and throttlers.
let timingOperations: [Operation] = debouncerOperations + variableOperations + throttlerOperations

private let debouncerOperations: [Operation] = [
  Operation("debouncer: init", count: 600) { count in
    for _ in 0..<count { _ = Debouncer(delay: .seconds(60)) }
  },
  Operation("debouncer: touch") { count in
    let debouncer = Debouncer(delay: .seconds(60))
    for _ in 0..<count { debouncer.touch() }
  },
  Operation("debouncer: touch that fires at once") { count in
    let debouncer = Debouncer(delay: .zero)
    for _ in 0..<count { debouncer.touch() }
  },
  Operation("debouncer: touch + cancel", count: 300) { count in
    let debouncer = Debouncer(delay: .seconds(60))
    for _ in 0..<count {
      debouncer.touch()
      debouncer.cancel()
    }
  },
  Operation("debouncer: touch + flush", count: 300) { count in
    let debouncer = Debouncer(delay: .seconds(60))
    for _ in 0..<count {
      debouncer.touch()
      await debouncer.flush()
    }
  },
  Operation("debouncer: touch + flush, with an action", count: 300) { count in
    let debouncer = Debouncer(delay: .seconds(60)) {}
    for _ in 0..<count {
      debouncer.touch()
      await debouncer.flush()
    }
  },
  Operation("debouncer: subscription and drop") { count in
    let debouncer = Debouncer(delay: .seconds(60))
    for _ in 0..<count { _ = debouncer.subscription() }
  },
  Operation("debouncer: subscribe and drop") { count in
    let debouncer = Debouncer(delay: .seconds(60))
    for _ in 0..<count { _ = debouncer.subscribe() }
  },
  Operation("debouncer: subscriberCount") { count in
    let debouncer = Debouncer(delay: .seconds(60))
    for _ in 0..<count { use(debouncer.subscriberCount) }
  },
  Operation("debounced(for:), an element", count: 600) { count in
    for await number in numbers(count).debounced(for: .zero) { use(number) }
  },
]

private let variableOperations: [Operation] = [
  Operation("debounced variable: init", count: 600) { count in
    for number in 0..<count { _ = DebouncerVar(number, delay: .seconds(60)) }
  },
  Operation("debounced variable: get") { count in
    let variable = DebouncerVar(1, delay: .seconds(60))
    for _ in 0..<count { use(variable.value) }
  },
  Operation("debounced variable: set") { count in
    let variable = DebouncerVar(0, delay: .seconds(60))
    for number in 1...count { variable.value = number }
  },
  Operation("debounced variable: touch") { count in
    let variable = DebouncerVar(0, delay: .seconds(60))
    for _ in 0..<count { variable.touch() }
  },
  Operation("debounced variable: set + cancel", count: 300) { count in
    let variable = DebouncerVar(0, delay: .seconds(60))
    for number in 1...count {
      variable.value = number
      variable.cancel()
    }
  },
  Operation("debounced variable: set + flush", count: 300) { count in
    let variable = DebouncerVar(0, delay: .seconds(60))
    for number in 1...count {
      variable.value = number
      await variable.flush()
    }
  },
  Operation("debounced variable: subscription and drop") { count in
    let variable = DebouncerVar(0, delay: .seconds(60))
    for _ in 0..<count { _ = variable.subscription() }
  },
  Operation("debounced variable: subscribe and drop") { count in
    let variable = DebouncerVar(0, delay: .seconds(60))
    for _ in 0..<count { _ = variable.subscribe() }
  },
  Operation("debounced variable: subscriberCount") { count in
    let variable = DebouncerVar(0, delay: .seconds(60))
    for _ in 0..<count { use(variable.subscriberCount) }
  },
]

private let throttlerOperations: [Operation] = [
  Operation("throttler: init", count: 600) { count in
    for _ in 0..<count { _ = Throttler(interval: .seconds(60)) }
  },
  Operation("throttler: touch") { count in
    let throttler = Throttler(interval: .seconds(60))
    for _ in 0..<count { throttler.touch() }
  },
  Operation("throttler: touch that fires at once") { count in
    let throttler = Throttler(interval: .zero)
    for _ in 0..<count { throttler.touch() }
  },
  Operation("throttler: touch + cancel", count: 300) { count in
    let throttler = Throttler(interval: .seconds(60), leading: false)
    for _ in 0..<count {
      throttler.touch()
      throttler.cancel()
    }
  },
  Operation("throttler: touch + flush", count: 300) { count in
    let throttler = Throttler(interval: .seconds(60), leading: false)
    for _ in 0..<count {
      throttler.touch()
      await throttler.flush()
    }
  },
  Operation("throttler: subscription and drop") { count in
    let throttler = Throttler(interval: .seconds(60))
    for _ in 0..<count { _ = throttler.subscription() }
  },
  Operation("throttler: subscribe and drop") { count in
    let throttler = Throttler(interval: .seconds(60))
    for _ in 0..<count { _ = throttler.subscribe() }
  },
  Operation("throttler: subscriberCount") { count in
    let throttler = Throttler(interval: .seconds(60))
    for _ in 0..<count { use(throttler.subscriberCount) }
  },
  Operation("throttled(for:), an element", count: 600) { count in
    for await number in numbers(count).throttled(for: .zero) { use(number) }
  },
]
