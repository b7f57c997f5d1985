public import Synchronization

extension Subscription {
  /// Ends the subscription, which has just been made, and registers a handler in its place.
  ///
  /// The handler gets the elements that the subscription would have got. It is registered with the source that
  /// created the subscription, even if another broadcaster forwarded it: all handlers of a source have one order.
  ///
  /// - Parameter recipe: The parts of the handler.
  /// - Returns: The handler, which has started.
  @inlinable
  func handler(_ recipe: consuming Handler.Recipe) -> Handler {
    if let filter = subscriber.filter { recipe = recipe.removingDuplicates(filter) }
    if let companion = subscriber.companion.take() { recipe.companion = companion }
    let host = subscriber.host
    if host == nil, subscriber.readsLog, subscriber.replay.isEmpty,
      let added = subscriber.core.replace(
        subscriber,
        at: subscriber.position.load(ordering: .relaxed),
        with: recipe
      )
    {
      return subscriber.core.start(added)
    }
    recipe.limits = subscriber.handlerLimits
    return host?.replace(subscriber, with: recipe)
      ?? subscriber.core.serve(recipe, inPlaceOf: subscriber)
  }
}

extension HubBase {
  /// Registers a handler in place of a subscriber that has not been read yet, and starts it.
  @usableFromInline
  final func serve(_ recipe: Handler.Recipe, inPlaceOf reader: Reader) -> Handler {
    var effects = HubEffects()
    let added = replace(reader, with: recipe, of: nil, &effects) { unread, _ in unread }
    effects.perform()
    return start(added)
  }

  /// Replaces a reader of the log by a handler, unless something has been sent since.
  @usableFromInline
  final func replace(
    _ reader: Reader,
    at position: Int,
    with recipe: Handler.Recipe
  ) -> Handler.Added? {
    var effects = HubEffects()
    let added = state.withLock { state -> Handler.Added? in
      guard reader.isRegistered, state.sequence == position else { return nil }
      reader.isCancelled.store(true, ordering: .releasing)
      state.remove(reader, &effects)
      let place = Place(id: reader.id, isOpen: !state.isFinished)
      return add(recipe, of: nil, at: place, &state, replaying: [])
    }
    effects.perform()
    return added
  }
}

extension BroadcastHub {
  /// Ends a subscriber that has not been read yet; it still counts.
  ///
  /// - Returns: The elements that it would have read.
  func takeOver(
    _ subscriber: Subscriber<Element>,
    _ state: inout State,
    _ effects: inout HubEffects
  ) -> [AnyBox] {
    subscriber.isCancelled.store(true, ordering: .releasing)
    var elements = ContiguousArray(subscriber.replay.reversed())
    var position = subscriber.position.load(ordering: .relaxed)
    let cutoff = cutoff.load(ordering: .relaxed)
    if position <= cutoff {
      // A reset since the registration has taken back the elements before it.
      effects.release(value: elements)
      elements = []
      position = cutoff
    }
    if case .window(let limit) = subscriber.source {
      guard subscriber.isRegistered else { return elements.map { Box($0) } }
      let others = Self.readers(&state)
      for unread in (0..<min(state.sequence - position, limit)).reversed() {
        if let element = others.window[others.window.count - 1 - unread] {
          elements.append(element)
        }
      }
      subscriber.isRegistered = false
      state.known?.remove(subscriber)
      state.windowReaders -= 1
      others.windowLimits.remove(limit)
      effects.release(value: others.trimWindow())
      state.takeRead(&effects)
    } else {
      let own = subscriber.ownBuffer
      if subscriber.readsLog {
        var chunk = subscriber.chunk
        for sequence in position..<max(position, state.sequence) {
          while let own, own.place.load(ordering: .relaxed) <= sequence,
            let element = own.popFirst()
          {
            elements.append(element)
          }
          while let run = chunk?.run, sequence >= run.limit { chunk = chunk?.follower }
          if let run = chunk?.run { elements.append(run[sequence]) }
        }
      }
      while let element = own?.popFirst() { elements.append(element) }
      if subscriber.isRegistered { state.remove(subscriber, &effects) }
    }
    return elements.map { Box($0) }
  }
}

extension Subscriber {
  /// The limits of a handler that gets what the subscriber would have got.
  @usableFromInline var handlerLimits: SubscriberLimits {
    if case .window(let limit) = source { return SubscriberLimits(.newest(limit)) }
    return buffer?.limits ?? SubscriberLimits()
  }
}
