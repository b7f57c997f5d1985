import Dispatch
import Plexus

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// The keyboard of the terminal on standard input.
///
/// Whether keys come as they are pressed is up to the ``Terminal``. It is meant to live
/// as long as the program.
@MainActor
final class Keyboard {
  /// Tells what has been typed, byte by byte or in pieces; nothing at the end of the input.
  let typed = Messenger<[UInt8]>()
  private let source: any DispatchSourceRead

  /// Begins to listen; `nil` if standard input is no terminal.
  init?() {
    guard isatty(STDIN_FILENO) == 1 else { return nil }
    source = DispatchSource.makeReadSource(fileDescriptor: STDIN_FILENO, queue: .global())
    source.setEventHandler { @Sendable [typed] in
      var buffer = [UInt8](repeating: 0, count: 256)
      let count = read(STDIN_FILENO, &buffer, buffer.count)
      // A terminal that has gone would be readable for ever.
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
