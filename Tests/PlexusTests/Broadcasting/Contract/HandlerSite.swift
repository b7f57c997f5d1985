import Plexus

/// The isolation and the kind of a handler.
enum HandlerSite: CaseIterable, Sendable {
  case mainActor
  case mainActorAsync
  case actorInstance
  case actorInstanceAsync
  case nonisolated
  case nonisolatedAsync

  static let synchronous: [HandlerSite] = [.mainActor, .actorInstance, .nonisolated]
  static let asynchronous: [HandlerSite] = [
    .mainActorAsync, .actorInstanceAsync, .nonisolatedAsync,
  ]
}

/// An actor with closures that are isolated to it.
actor HandlerHost {
  private(set) var callCount = 0

  func observe<Source: Broadcaster>(
    _ source: Source,
    policy: Policy,
    isAsync: Bool,
    _ body: @escaping @Sendable (Source.Element) -> Void
  ) -> ObservationToken {
    guard isAsync else {
      return source.observe(bufferingPolicy: policy()) { element in
        self.callCount += 1
        body(element)
      }
    }
    return source.observe(bufferingPolicy: policy()) { element async in
      self.callCount += 1
      body(element)
    }
  }
}

extension ContractStage {
  /// Registers a handler that receives the numbers.
  func observe(
    _ site: HandlerSite,
    policy: Policy = .unbounded,
    on host: HandlerHost,
    _ body: @escaping @Sendable (Int) -> Void
  ) async -> ObservationToken {
    // These tests do not send while they register a handler.
    let open = subject.registering { $0 }
    let handler: @Sendable (Element) -> Void = { element in
      if let number = open(element)?.number { body(number) }
    }
    switch site {
    case .mainActor: return await observeOnMainActor(policy, isAsync: false, handler)
    case .mainActorAsync: return await observeOnMainActor(policy, isAsync: true, handler)
    case .actorInstance:
      return await host.observe(source, policy: policy, isAsync: false, handler)
    case .actorInstanceAsync:
      return await host.observe(source, policy: policy, isAsync: true, handler)
    case .nonisolated:
      return source.observe(bufferingPolicy: policy()) { element in handler(element) }
    case .nonisolatedAsync:
      return source.observe(bufferingPolicy: policy()) { element async in handler(element) }
    }
  }

  @MainActor
  private func observeOnMainActor(
    _ policy: Policy,
    isAsync: Bool,
    _ body: @escaping @Sendable (Element) -> Void
  ) -> ObservationToken {
    guard isAsync else {
      return source.observe(bufferingPolicy: policy()) { element in
        MainActor.assertIsolated()
        body(element)
      }
    }
    return source.observe(bufferingPolicy: policy()) { element async in
      MainActor.assertIsolated()
      body(element)
    }
  }
}

extension ContractStage {
  func observe(as owner: Parcel, isAsync: Bool, _ body: @escaping @Sendable (Int) -> Void) {
    let open = subject.registering { $0 }
    if isAsync {
      source.observe(as: owner) { _, element async in
        if let number = open(element)?.number { body(number) }
      }
    } else {
      source.observe(as: owner) { _, element in
        if let number = open(element)?.number { body(number) }
      }
    }
  }

  func observeSlowly(_ body: @escaping @Sendable (Int) async -> Void) -> ObservationToken {
    let open = subject.registering { $0 }
    return source.observe { element async in
      if let number = open(element)?.number { await body(number) }
    }
  }
}
