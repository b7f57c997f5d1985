/// The text of `--help`.
enum Usage {
  static let text = """
    Replays the departures of New York's three airports on 8 February 2013, the first day of a
    blizzard, from an HTTP origin on this machine, and shows them on a board. Airlines, aircraft,
    airports and weather are fetched once each and shared by all rows that need them, and so are
    the badges of the airlines; of the weather one asks now and then whether it has changed. What
    does not change in a day is kept on disk, where the next start finds it, however this one ends.

    usage: DepartureBoard [options]

      --speed N|max           seconds of the day in a second; 300 if not given, so that the day
                              takes about four minutes; max: as fast as everything is answered
      --plain                 print plain lines, as always if the output is not a terminal
      --filter TEXT           show only flights with these words in their number, airports, airline,
                              aircraft or status; the numbers still tell of the whole day
      --latency MILLISECONDS  how long the origin takes to answer; 25 if not given
      --offline-at HH:MM      when the origin goes away; what is known is shown on, marked with ~
                              once it is stale
      --online-at HH:MM       when it comes back; two hours later if not given
      --until HH:MM           when to stop; after the last flight if not given
      --port N                the port of the origin; any that is free if not given
      --cache DIRECTORY       where to keep what was fetched; the user's caches if not given
      --no-cache              keep nothing, and begin with nothing
      --help                  show this

    On a terminal, type to filter; Backspace and Escape take it back. Ctrl-C ends the board, writes
    what is not on disk yet and prints what has been counted so far. Set NO_COLOR for no colours.
    """
}
