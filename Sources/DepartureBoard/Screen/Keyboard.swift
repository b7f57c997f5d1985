import Dispatch
import Plexus

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Android)
import Android
#endif

/// The keyboard of the terminal on standard input.
///
/// The ``Terminal`` determines whether keys arrive when they are pressed. The keyboard lives as long as the program.
@MainActor
final class Keyboard {
  /// Sends typed bytes, one by one or in pieces, and an empty array at the end of the input.
  let typed = Messenger<[UInt8]>()
  private let source: any DispatchSourceRead

  /// Starts to read; `nil` if standard input is not a terminal.
  init?() {
    guard isatty(STDIN_FILENO) == 1 else { return nil }
    source = DispatchSource.makeReadSource(fileDescriptor: STDIN_FILENO, queue: .global())
    source.setEventHandler { @Sendable [typed] in
      var buffer = [UInt8](repeating: 0, count: 256)
      let count = read(STDIN_FILENO, &buffer, buffer.count)
      // A closed terminal would be readable endlessly.
      if count >= 0 || (errno != EINTR && errno != EAGAIN) {
        typed.send(Array(buffer.prefix(max(0, count))))
      }
    }
    typed.observe(as: self) { keyboard, bytes in
      if bytes.isEmpty { keyboard.source.cancel() }
    }
    source.resume()
  }
}
