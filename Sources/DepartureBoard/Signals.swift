import Dispatch
import Plexus

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// The signals of the system as messages.
///
/// The signals that it stands for do nothing by themselves any more. It is meant to live as long as the
/// program.
@MainActor
final class Signals {
  /// Tells the number of each signal.
  let received = Messenger<Int32>()
  private let sources: [any DispatchSourceSignal]

  /// Begins to listen.
  init(_ numbers: [Int32]) {
    let received = received
    sources = numbers.map { number in
      signal(number, SIG_IGN)
      let source = DispatchSource.makeSignalSource(signal: number, queue: .global())
      source.setEventHandler { @Sendable in received.send(number) }
      source.resume()
      return source
    }
  }
}
