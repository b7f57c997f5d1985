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

/// A sequence of received signals.
///
/// The signals lose their default actions. Signals that were ignored when the program was started, for
/// example by `nohup`, stay ignored. An instance should live as long as the program.
@MainActor
final class Signals {
  /// The numbers of the signals, including signals that arrive before the iteration begins.
  let received: Subscription<Int32>
  private let messenger = Messenger<Int32>()
  private let sources: [any DispatchSourceSignal]

  /// Begins to receive signals; the registration is complete when this initializer returns.
  ///
  /// - Parameters:
  ///   - numbers: The numbers of the signals.
  ///   - arrived: A closure that is called immediately for each signal on a global queue, even if the main actor is
  ///     busy.
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
    // Until the registration is complete, a signal has its default action.
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
    #elseif canImport(Android)
    let handler = action.sa_handler
    #endif
    return unsafeBitCast(handler, to: Int.self) == unsafeBitCast(SIG_IGN, to: Int.self)
  }
}
