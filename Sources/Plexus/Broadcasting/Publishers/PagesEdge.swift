/// An edge of a list of pages.
enum PagesEdge: Hashable, CaseIterable, Sendable {
  /// The edge before the first loaded page.
  case start
  /// The edge after the last loaded page.
  case end

  var opposite: PagesEdge {
    self == .start ? .end : .start
  }

  /// A value for each edge.
  struct Pair<Value: Sendable>: Sendable {
    var start: Value
    var end: Value

    subscript(edge: PagesEdge) -> Value {
      get { edge == .start ? start : end }
      set { if edge == .start { start = newValue } else { end = newValue } }
    }
  }
}
