/// A broadcaster without replay that sends only through its hub.
protocol HubOwner<Element>: HubBacked {
  /// The hub that serves the subscribers.
  nonisolated var hub: BroadcastHub<Element> { get }
}

extension HubOwner {
  nonisolated var replayLimit: Int { 0 }

  nonisolated func withHub<Result>(
    _ body: (_ hub: BroadcastHub<Element>, _ replay: [Element]) -> Result
  ) -> Result {
    body(hub, [])
  }
}
