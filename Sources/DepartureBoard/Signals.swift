import Dispatch
import Plexus

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// The signals of the system as a sequence.
///
/// The signals that it stands for do nothing by themselves any more; those that whoever has started the
/// program wants ignored, for instance with `nohup`, stay ignored. It is meant to live as long as the
/// program.
@MainActor
final class Signals {
  /// The number of each signal from the beginning on, also of those that came before anybody listened.
  let received: Subscription<Int32>
  private let messenger = Messenger<Int32>()
  private let sources: [any DispatchSourceSignal]

  /// Begins to listen; it does when this returns.
  ///
  /// - Parameters:
  ///   - numbers: The numbers of the signals.
  ///   - arrived: What is done at once with each, on a thread of its own, however busy the main actor is.
  init(_ numbers: [Int32], arrived: @escaping @Sendable (Int32) -> Void = { _ in }) {
    received = messenger.subscription()
    let registration = DispatchGroup()
    sources = numbers.filter { !Self.isIgnored($0) }.map { [messenger] number in
      let source = DispatchSource.makeSignalSource(signal: number, queue: .global())
      source.setEventHandler { @Sendable in
        messenger.send(number)
        arrived(number)
      }
      registration.enter()
      source.setRegistrationHandler { @Sendable in registration.leave() }
      source.resume()
      return source
    }
    // Up to here a signal ends the program as if it had not begun.
    registration.wait()
    #if canImport(Darwin)
    for source in sources { signal(Int32(source.handle), SIG_IGN) }
    #endif
  }

  private static func isIgnored(_ number: Int32) -> Bool {
    var action = sigaction()
    guard sigaction(number, nil, &action) == 0 else { return false }
    #if canImport(Darwin)
    let handler = action.__sigaction_u.__sa_handler
    #elseif canImport(Glibc)
    let handler = action.__sigaction_handler.sa_handler
    #elseif canImport(Musl)
    let handler = action.__sa_handler.sa_handler
    #endif
    return unsafeBitCast(handler, to: Int.self) == unsafeBitCast(SIG_IGN, to: Int.self)
  }
}
