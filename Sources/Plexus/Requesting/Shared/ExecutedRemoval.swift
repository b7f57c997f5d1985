/// The error of a removal that an engine can have executed, although it does not hold as it has to.
///
/// The caller gets the error. The cacher makes up for the rest, and the cache does not repeat the removal.
package protocol ExecutedRemoval: Error {
  /// Whether the engine has executed the removal.
  var isExecuted: Bool { get }
}
