#if canImport(SwiftUI)
public import SwiftUI

extension ObservedValue {
  /// Returns a binding that reads the value and passes new values to a closure, for example to dispatch them.
  ///
  /// - Parameter send: Called with the values that the view sets.
  /// - Returns: The binding.
  public func binding(send: @escaping @MainActor (Value) -> Void) -> Binding<Value> {
    Binding(get: { @MainActor in self.value }, set: { @MainActor in send($0) })
  }
}
#endif
