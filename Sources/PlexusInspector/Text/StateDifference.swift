/// The difference of two states: the parts that were changed, added or removed.
///
/// It looks at a bounded number of parts, and has a bounded number of lines. Parts that are `Equatable` and equal are not
/// looked into.
struct StateDifference: Sendable {
  /// A part that differs.
  struct Line: Sendable, Equatable {
    /// The path to the part, such as `rows[3].name`.
    let path: String
    /// The text before, or `nil` if the part was added.
    let before: String?
    /// The text after, or `nil` if the part was removed.
    let after: String?
  }

  /// The parts, in the order of the properties.
  private(set) var lines: [Line] = []
  /// Whether there can be more parts than those listed.
  private(set) var isCut = false

  /// The number of parts that are looked at, and of lines.
  private static let limits = (parts: 20_000, lines: 100)

  private let disclosure: Disclosure
  private var visitCount = 0

  /// Compares two states of one type.
  init(_ before: Any, _ after: Any, _ disclosure: Disclosure) {
    self.disclosure = disclosure
    compare(before, after, "", depth: 0)
  }

  private mutating func compare(_ before: Any, _ after: Any, _ path: String, depth: Int) {
    visitCount += 1
    guard visitCount < Self.limits.parts, lines.count < Self.limits.lines else {
      isCut = true
      return
    }
    if let isEqual = Self.areEqual(before, after), isEqual { return }
    let (old, new) = (Mirror(reflecting: before), Mirror(reflecting: after))
    guard depth < 16, let style = old.displayStyle, style == new.displayStyle else {
      return compareLeaves(before, after, path)
    }
    switch style {
    case .optional:
      switch (old.children.first?.value, new.children.first?.value) {
      case (nil, nil): break
      case (let old?, let new?): compare(old, new, path, depth: depth + 1)
      default: append(path, before, after)
      }
    case .struct where depth == 0 || !(before is any CustomStringConvertible):
      compareFields(before, after, (old, new), path, depth)
    case .tuple:
      compareFields(before, after, (old, new), path, depth)
    case .enum where !(before is any CustomStringConvertible):
      guard let from = old.children.first, let to = new.children.first, from.label == to.label
      else { return compareLeaves(before, after, path) }
      compare(from.value, to.value, Self.path(path, from.label), depth: depth + 1)
    case .collection: compareElements(old, new, path, depth)
    // A large one is not copied.
    case .dictionary where old.children.count + new.children.count <= Self.limits.parts:
      comparePairs(before, after, path, depth)
    case .set where old.children.count + new.children.count <= Self.limits.parts:
      compareSets(before, after, path)
    default: compareLeaves(before, after, path)
    }
  }

  private mutating func compareFields(
    _ before: Any,
    _ after: Any,
    _ mirrors: (old: Mirror, new: Mirror),
    _ path: String,
    _ depth: Int
  ) {
    let (old, new) = (Array(mirrors.old.children), Array(mirrors.new.children))
    // The labels of a mirror of the type's own can be anything.
    let isReadable = disclosure.showsValues || !(before is any CustomReflectable)
    guard isReadable, !old.isEmpty, old.count == new.count else {
      return compareLeaves(before, after, path)
    }
    for (old, new) in zip(old, new) {
      compare(old.value, new.value, Self.path(path, old.label), depth: depth + 1)
    }
  }

  private mutating func compareElements(
    _ old: Mirror,
    _ new: Mirror,
    _ path: String,
    _ depth: Int
  ) {
    let (olds, news) = (old.children.makeIterator(), new.children.makeIterator())
    var index = 0
    while true {
      let (old, new) = (olds.next()?.value, news.next()?.value)
      if old == nil, new == nil { return }
      guard visitCount < Self.limits.parts, lines.count < Self.limits.lines else {
        isCut = true
        return
      }
      if let old, let new {
        compare(old, new, "\(path)[\(index)]", depth: depth + 1)
      } else {
        visitCount += 1
        append("\(path)[\(index)]", old, new)
      }
      index += 1
    }
  }

  private mutating func comparePairs(_ before: Any, _ after: Any, _ path: String, _ depth: Int) {
    guard let old = before as? [AnyHashable: Any], let new = after as? [AnyHashable: Any] else {
      return compareLeaves(before, after, path)
    }
    for (key, value) in old {
      if let other = new[key] {
        compare(value, other, self.path(path, key), depth: depth + 1)
      } else {
        append(self.path(path, key), value, nil)
      }
    }
    for (key, value) in new where old[key] == nil { append(self.path(path, key), nil, value) }
  }

  private mutating func compareSets(_ before: Any, _ after: Any, _ path: String) {
    guard let old = before as? Set<AnyHashable>, let new = after as? Set<AnyHashable> else {
      return compareLeaves(before, after, path)
    }
    for element in old.subtracting(new) { append(path, element.base, nil) }
    for element in new.subtracting(old) { append(path, nil, element.base) }
  }

  private mutating func compareLeaves(_ before: Any, _ after: Any, _ path: String) {
    guard Self.areEqual(before, after) == nil else { return append(path, before, after) }
    let all = Disclosure(showsValues: true)
    if all.text(of: before, limit: 10_000) == all.text(of: after, limit: 10_000) { return }
    append(path, before, after)
  }

  private mutating func append(_ path: String, _ before: Any?, _ after: Any?) {
    guard lines.count < Self.limits.lines else {
      isCut = true
      return
    }
    lines.append(
      Line(
        path: path.isEmpty ? "state" : path.shortened(to: 200),
        before: before.map { disclosure.text(of: $0) },
        after: after.map { disclosure.text(of: $0) }
      )
    )
  }

  private static func path(_ path: String, _ label: String?) -> String {
    guard let label else { return path }
    if label.hasPrefix(".") { return path + label }
    return path.isEmpty ? label : "\(path).\(label)"
  }

  /// The path to the value of a key, which is a value itself.
  private func path(_ path: String, _ key: AnyHashable) -> String {
    disclosure.showsValues
      ? "\(path)[\(disclosure.text(of: key.base, limit: 60))]" : "\(path)[\(type(of: key.base))]"
  }

  /// Returns whether two values are equal, or `nil` if that cannot be compared.
  private static func areEqual(_ one: Any, _ other: Any) -> Bool? {
    guard let one = one as? any Equatable else { return nil }
    return isEqual(one, other)
  }

  private static func isEqual<Value: Equatable>(_ one: Value, _ other: Any) -> Bool? {
    (other as? Value).map { $0 == one }
  }
}
