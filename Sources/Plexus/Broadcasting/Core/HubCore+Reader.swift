// @unchecked Sendable because Swift requires it of classes with subclasses: `isRegistered` is guarded by the lock of
// the hub.

extension HubCore {
  /// The part of a ``Subscriber`` that does not depend on the type of its elements.
  @usableFromInline
  class Reader: Waiter, @unchecked Sendable {
    @usableFromInline let core: HubCore
    /// Whether it reads the shared log.
    @usableFromInline let readsLog: Bool
    /// Whether it is counted; guarded by the lock of the hub.
    @exclusivity(unchecked) @safe
    @usableFromInline var isRegistered = false
    /// A registration that ends with this subscription; set before another thread can access the reader.
    @exclusivity(unchecked) @safe
    @usableFromInline var companion: Registration?

    @inlinable
    init(id: Int, core: HubCore, readsLog: Bool) {
      self.core = core
      self.readsLog = readsLog
      super.init(id: id)
    }

    deinit {
      core.remove(self)
    }
  }
}
