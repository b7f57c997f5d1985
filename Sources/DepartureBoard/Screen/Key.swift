/// A key that the board handles.
enum Key: Hashable, Sendable {
  case text(String)
  case backspace
  case escape
}
