import Dispatch
import Foundation
import Plexus

/// Waits for Ctrl-C or another request to terminate the process.
func interruption() async {
  let interruptions = Messenger<Int32>()
  let received = interruptions.subscription()
  let sources = [SIGINT, SIGTERM].map { number in
    // Disables the default action of the signal.
    signal(number, SIG_IGN)
    let source = DispatchSource.makeSignalSource(signal: number)
    source.setEventHandler { interruptions.send(number) }
    source.resume()
    return source
  }
  for await _ in received { break }
  for source in sources { source.cancel() }
}
