extension Options {
  /// The text of `--help`.
  static let help = """
    Replays the departures from New York's three airports on 8 February 2013, the first day of a
    blizzard, and shows them on a board. Airlines, aircraft, airports and weather come from an HTTP
    origin on this machine. All rows share each fetched value until it expires; expired weather is
    revalidated, and each airline's badge is downloaded once. Data that does not change within a day
    is cached on disk for the next run, even if this one is killed.

    usage: DepartureBoard [options]

      --speed N|max           simulated seconds in a second; 300 if not given, about four minutes for
                              the day; max: as fast as the requests are answered
      --plain                 print plain lines, the default if the output is not a terminal
      --filter TEXT           show only flights with these words in their number, airports, airline,
                              aircraft or status; the totals still include all flights
      --latency MILLISECONDS  the latency of the origin; 25 if not given
      --offline-at HH:MM      when the origin goes offline; the board keeps cached data and marks
                              stale data with ~
      --online-at HH:MM       when it is online again; two hours later if not given
      --until HH:MM           when to stop; after the last flight if not given
      --port N                the port of the origin; any free port if not given
      --cache DIRECTORY       the directory of the cache; in the user's caches if not given
      --no-cache              do not read or write a cache
      --redis HOST:PORT       share fetched values with other boards over this Redis server, in place of
                              the cache on disk; several boards fetch what one does. A flight change
                              on one board is shown on all, also on one whose day is not that far. The
                              path of a socket is an address, too. The signal USR1 makes all boards
                              forget
      --inspect               print the address of a page for the browser that shows the caches,
                              events and states of the run
      --help                  show this text

    On a terminal, type to filter; Backspace erases a character, Escape the whole filter. The next
    run on a terminal with the same cache begins with the last filter. The arrow keys and the page
    keys show the timetable of the whole day, which is loaded page by page; Escape returns to the
    board. Ctrl-C stops the replay, writes unsaved data to disk and prints the totals. Set NO_COLOR
    for output without color.
    """
}
