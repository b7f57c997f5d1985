#if canImport(SwiftUI)
public import SwiftUI

extension ObservedValue {
  /// Returns a binding that reads the value and passes new values to a closure, for example to dispatch them.
  ///
  /// - Parameter send: Called with the values that the view sets.
  /// - Returns: The binding.
  public func binding(send: @escaping @MainActor (Value) -> Void) -> Binding<Value> {
    Binding(get: { self.value }, set: { send($0) })
  }
}
#endif
