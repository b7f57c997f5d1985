/// A selector and its closure, independent of the type of the value.
protocol ConsumerClosure<State>: AnyObject, Sendable {
  associatedtype State: Sendable

  /// Whether the closure was removed.
  var isRemoved: Bool { get }
  /// Records the current state, if any; called first.
  func install(_ state: State?)
  /// Evaluates the next state.
  func consume(_ state: State)
  /// Releases everything; nothing is called afterwards.
  func remove()
}

/// A selector, its newest value, and the closure to call when it changes.
final class ConsumerEntry<State: Sendable, Value: Equatable & Sendable>: ConsumerClosure {
  private struct Content: Sendable {
    let select: @Sendable (State) -> Value
    let call: Call
    var value: Value?
  }

  private let firesImmediately: Bool
  /// The content to release on removal; only the thread that has the turn changes its value.
  private let content: Locked<Content?>

  init(
    _ select: @escaping @Sendable (State) -> Value,
    firesImmediately: Bool,
    call: Call
  ) {
    self.firesImmediately = firesImmediately
    content = Locked(Content(select: select, call: call))
  }

  var isRemoved: Bool {
    content.withLock { $0 == nil }
  }

  func install(_ state: State?) {
    guard let state, let content = content.withLock({ $0 }) else { return }
    let value = content.select(state)
    set(value)
    if firesImmediately { content.call.fire(Change(old: nil, new: value)) }
  }

  func consume(_ state: State) {
    guard let content = content.withLock({ $0 }) else { return }
    let value = content.select(state)
    guard value != content.value else { return }
    set(value)
    content.call.fire(Change(old: content.value, new: value))
  }

  private func set(_ value: Value) {
    content.release { content in
      let old = content?.value
      content?.value = value
      return old
    }
  }

  func remove() {
    let content = content.withLock { content in
      defer { content = nil }
      return content
    }
    content?.call.end()
  }
}

extension ConsumerEntry {
  /// The way to call a closure, and its removal.
  struct Call: Sendable {
    let fire: @Sendable (Change<Value>) -> Void
    let end: @Sendable () -> Void

    /// Calls closures in one task with the others of the same actor.
    static func queue(
      _ core: ConsumerCore<State>,
      _ onChange: @escaping @isolated(any) @Sendable (Value?, Value) -> Void
    ) -> Self {
      let queue = core.queue(of: onChange.isolation)
      let held = HeldClosure(onChange)
      return Self(
        fire: { change in
          queue.append { await held.closure?(change.old, change.new) }
        },
        end: { [weak core] in
          held.release()
          core?.leave(queue)
        }
      )
    }

    /// Calls the closure in its own task.
    static func task(
      _ onChange: @escaping @isolated(any) @Sendable (Value?, Value) async -> Void
    ) -> Self {
      let recipe = Handler.Recipe(
        isolation: onChange.isolation,
        .suspending { box in
          let change = Box<Change<Value>>.element(of: box)
          await onChange(change.old, change.new)
          return .succeeded
        }
      )
      let handler = HandlerQueue.handler(recipe)
      handler.queue.start(isolation: recipe.isolation)
      return Self(fire: { handler.queue.send(Box($0)) }, end: { handler.cancel() })
    }

    /// A closure that is released on removal.
    private final class HeldClosure: Sendable {
      typealias Closure = @isolated(any) @Sendable (Value?, Value) -> Void

      private let held: Locked<Closure?>

      init(_ closure: @escaping Closure) {
        held = Locked(closure)
      }

      var closure: Closure? {
        held.withLock { $0 }
      }

      func release() {
        held.release { held in
          defer { held = nil }
          return held
        }
      }
    }
  }
}
