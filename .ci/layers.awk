# Checks that the folders of Plexus depend on each other in one direction only.
# Usage: find Sources/Plexus -name '*.swift' | xargs awk -f .ci/layers.awk
#
# A file depends on a folder if it mentions a type that is declared there, and nowhere else, at the top level of a file.

BEGIN {
  permit("Collections", "")
  permit("Concurrency", "Collections")
  permit("Broadcasting", "Concurrency Collections")
  permit("SingleFlight", "Broadcasting Concurrency Collections")
  permit("Publishers", "SingleFlight Broadcasting Concurrency Collections")
  permit("Requesting", "Publishers SingleFlight Broadcasting Concurrency Collections")
  permit("Events", "SingleFlight Broadcasting Concurrency Collections")
  permit("State", "SingleFlight Broadcasting Concurrency Collections")
  permit("Timing", "SingleFlight Broadcasting Concurrency Collections")
}

function permit(room, others,   names, count, place) {
  rooms[room]
  count = split(others, names, " ")
  for (place = 1; place <= count; place++) permitted[room, names[place]]
}

function room_of(file,   parts, count) {
  count = split(file, parts, "/")
  if (parts[count - 1] == "Publishers") return "Publishers"
  return parts[3]
}

FNR == 1 {
  room = room_of(FILENAME)
  if (!(room in rooms)) {
    print FILENAME ": the folder " room " has no place in the order of .ci/layers.awk"
    failed = 1
  }
}

{
  line = $0
  gsub(/"([^"\\]|\\.)*"/, "", line)
  sub(/\/\/.*/, "", line)
  if (match(line, /(^| )(struct|class|enum|actor|protocol|typealias) [A-Za-z_]+/)) {
    count = split(substr(line, RSTART, RLENGTH), words, " ")
    name = words[count]
    declared[room, name]
    if (line ~ /^[^ ]/ && line !~ /^(file)?private /) {
      if (!(name in home)) home[name] = room
      else if (home[name] != room) home[name] = ""
    }
  }
  while (match(line, /[A-Za-z_][A-Za-z_0-9]*/)) {
    mentions[room, substr(line, RSTART, RLENGTH)] = FILENAME
    line = substr(line, RSTART + RLENGTH)
  }
}

END {
  for (mention in mentions) {
    split(mention, parts, SUBSEP)
    room = parts[1]
    name = parts[2]
    if (!(name in home) || home[name] == "" || home[name] == room) continue
    if ((room, name) in declared || (room, home[name]) in permitted) continue
    print mentions[mention] ": " room " depends on " name " of " home[name]
    failed = 1
  }
  exit failed
}
