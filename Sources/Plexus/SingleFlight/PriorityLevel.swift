/// The priority of a task, or none, as a number.
///
/// `TaskPriority` belongs to a library that may change its layout, so that every copy of one takes a call.
@usableFromInline
struct PriorityLevel: Hashable, Comparable, Sendable {
  @usableFromInline let rawValue: UInt8

  @usableFromInline
  init(rawValue: UInt8) {
    self.rawValue = rawValue
  }

  @inlinable
  init(_ priority: TaskPriority) {
    self.init(rawValue: priority.rawValue)
  }

  @usableFromInline static var none: PriorityLevel { PriorityLevel(rawValue: 0) }

  static var background: PriorityLevel { PriorityLevel(.background) }

  /// The priority of the current task.
  @inlinable static var current: PriorityLevel { PriorityLevel(Task.currentPriority) }

  /// The priority, if there is one.
  var taskPriority: TaskPriority? { rawValue == 0 ? nil : TaskPriority(rawValue: rawValue) }

  @usableFromInline
  static func < (left: PriorityLevel, right: PriorityLevel) -> Bool {
    left.rawValue < right.rawValue
  }
}
