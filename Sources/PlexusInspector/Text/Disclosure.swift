private import Foundation

/// The rule for showing values, and the texts of values under that rule.
///
/// All texts are bounded, in their length and in the number of parts that are looked at. Instances of classes are not
/// looked into: only their own members can read them safely.
struct Disclosure: Sendable {
  /// Whether values are shown; otherwise, their types and sizes are.
  let showsValues: Bool

  /// Returns the text of a value, or its type and size.
  ///
  /// - Parameters:
  ///   - value: The value.
  ///   - limit: The maximum number of characters.
  /// - Returns: The text in one or more lines.
  func text(of value: Any, limit: Int = 200) -> String {
    guard showsValues else { return Self.shape(of: value) }
    var writer = ValueWriter(limit: limit)
    writer.write(value)
    return writer.text
  }

  /// Returns the text of an action or an event: without values, the name of its type, and of a case without its payload.
  func name(of value: Any, limit: Int = 200) -> String {
    if showsValues { return text(of: value, limit: limit) }
    let mirror = Mirror(reflecting: value)
    guard mirror.displayStyle == .enum, !(value is any CustomReflectable) else {
      return Self.shape(of: value)
    }
    if let label = mirror.children.first?.label { return ".\(label)" }
    // A description of the type's own can say anything.
    let hasOwnText =
      value is any CustomStringConvertible || value is any CustomDebugStringConvertible
      || value is any TextOutputStreamable
    return hasOwnText ? "\(type(of: value))" : ".\(value)"
  }

  /// Returns the text of an error, or its type.
  func text(of error: any Error) -> String {
    showsValues ? "\(error)".shortened(to: 200) : "\(type(of: error))"
  }

  /// Returns a type and a size.
  static func shape(of value: Any) -> String {
    let type = "\(type(of: value))".shortened(to: 80)
    if let text = value as? String { return "\(type), \(text.utf8.count) bytes" }
    if let collection = value as? any StoredElements {
      return "\(type), \(collection.count) elements"
    }
    return "\(type), \(Self.size(of: value)) bytes"
  }

  private static func size<Value>(of value: Value) -> Int { MemoryLayout<Value>.size }
}

/// A collection that knows its size; for others, counting can take any time, or trap.
private protocol StoredElements {
  var count: Int { get }
}

extension Array: StoredElements {}
extension ArraySlice: StoredElements {}
extension ContiguousArray: StoredElements {}
extension Dictionary: StoredElements {}
extension Set: StoredElements {}
extension Data: StoredElements {}

/// A writer of values that stops at a number of characters.
private struct ValueWriter {
  private(set) var text = ""
  private var isFull = false
  private let limit: Int

  init(limit: Int) {
    self.limit = limit
  }

  mutating func write(_ value: Any, depth: Int = 0) {
    guard !isFull else { return }
    if let text = value as? String {
      // A long text is not copied as a whole.
      let text = text.prefix(limit + 1)
      return append(depth == 0 ? String(text) : "\"\(text)\"")
    }
    let mirror = Mirror(reflecting: value)
    guard depth < 8, let style = mirror.displayStyle else { return append(Self.leaf(value)) }
    switch style {
    case .optional:
      guard let wrapped = mirror.children.first?.value else { return append("nil") }
      write(wrapped, depth: depth)
    case .collection, .set: write(mirror.children.lazy.map { (nil, $0.value) }, "[", "]", depth)
    case .dictionary: writePairs(mirror, depth)
    case .tuple: write(mirror.children.map { ($0.label, $0.value) }, "(", ")", depth)
    case .struct:
      guard !(value is any CustomStringConvertible), !mirror.children.isEmpty else {
        return append(Self.leaf(value))
      }
      write(mirror.children.map { ($0.label, $0.value) }, "\(type(of: value))(", ")", depth)
    case .enum:
      guard !(value is any CustomStringConvertible), let child = mirror.children.first else {
        return append(Self.leaf(value))
      }
      append(child.label ?? "")
      let isTuple = Mirror(reflecting: child.value).displayStyle == .tuple
      if isTuple {
        write(child.value, depth: depth + 1)
      } else {
        write([(nil, child.value)], "(", ")", depth)
      }
    case .class, .foreignReference: append(Self.leaf(value))
    @unknown default: append(Self.leaf(value))
    }
  }

  private mutating func writePairs(_ mirror: Mirror, _ depth: Int) {
    append("[")
    for (index, child) in mirror.children.enumerated() where !isFull {
      if index > 0 { append(", ") }
      let pair = Array(Mirror(reflecting: child.value).children)
      guard pair.count == 2 else { continue }
      write(pair[0].value, depth: depth + 1)
      append(": ")
      write(pair[1].value, depth: depth + 1)
    }
    append("]")
  }

  private mutating func write(
    _ parts: some Sequence<(String?, Any)>,
    _ opening: String,
    _ closing: String,
    _ depth: Int
  ) {
    append(opening)
    for (index, part) in parts.enumerated() where !isFull {
      if index > 0 { append(", ") }
      if let label = part.0, !label.hasPrefix(".") { append("\(label): ") }
      write(part.1, depth: depth + 1)
    }
    append(closing)
  }

  private mutating func append(_ part: String) {
    guard !isFull else { return }
    text += part
    // Counting the bytes does not look at each character.
    if text.utf8.count > limit {
      isFull = true
      text = text.shortened(to: limit)
    }
  }

  private static func leaf(_ value: Any) -> String { "\(value)" }
}

extension String {
  /// Returns the text, or its beginning with an ellipsis.
  ///
  /// A character can have any number of marks, so that the number of bytes is limited, too: to four times the number.
  func shortened(to count: Int) -> String {
    guard utf8.count > count else { return self }
    var text = Substring(prefix(count))
    while text.utf8.count > 4 * count {
      text = Substring(text.unicodeScalars.prefix(text.unicodeScalars.count / 2))
    }
    return text.endIndex == endIndex ? self : text + "…"
  }
}
