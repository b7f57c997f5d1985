import Dispatch
import Foundation
import Plexus

/// Waits until somebody presses Ctrl-C, or asks the process to end in another way.
func interruption() async {
  let interruptions = Messenger<Int32>()
  let received = interruptions.subscription()
  let sources = [SIGINT, SIGTERM].map { number in
    // The signal does nothing by itself any more.
    signal(number, SIG_IGN)
    let source = DispatchSource.makeSignalSource(signal: number)
    source.setEventHandler { interruptions.send(number) }
    source.resume()
    return source
  }
  for await _ in received { break }
  for source in sources { source.cancel() }
}
