#if canImport(SwiftUI)
public import SwiftUI

extension ObservedValue {
  /// Returns a binding that reads the value and hands over what is set, for instance to a store.
  ///
  /// - Parameter send: Called with what the view sets.
  /// - Returns: The binding.
  public func binding(send: @escaping @MainActor (Value) -> Void) -> Binding<Value> {
    Binding(get: { self.value }, set: { send($0) })
  }
}
#endif
