public import Plexus

extension MuxRepository {
  /// Adds a cache, unless it is a member.
  ///
  /// - Parameter cache: The cache, which is not kept alive.
  public nonisolated func register<Value>(_ cache: HTTPCache<Value>) {
    cache.register(in: self)
  }

  /// Removes a cache.
  ///
  /// - Parameter cache: The cache. If it is not a member, the call has no effect.
  public nonisolated func unregister<Value>(_ cache: HTTPCache<Value>) {
    unregister(cache.member)
  }
}
