/// What is pressed on a keyboard, as far as the board cares.
enum Key: Hashable, Sendable {
  case text(String)
  case backspace
  case escape
}
