import Dispatch
import Foundation
import Plexus

/// A sequence of received signals, which lose their default actions.
///
/// An instance should live as long as the program.
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
  init(_ numbers: [Int32], arrived: @escaping @Sendable (Int32) -> Void) {
    received = messenger.subscription()
    let registration = DispatchGroup()
    sources = numbers.map { [messenger] number in
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
    registration.wait()
    #if canImport(Darwin)
    for number in numbers { signal(number, SIG_IGN) }
    #endif
  }
}
