# Finds words and summaries that plain technical English does without.
# Usage: awk -v pending=LIST -f .ci/prose.awk FILE...
#
# Of Swift files it reads the comments and the raw identifiers, of all other files every line. LIST names folders and
# files that are still to be rewritten, one path a line: their hits are counted instead of printed. A path of LIST
# without a hit is a failure, so that the list shrinks.

BEGIN {
  word_count = split("whoever|somebody|nobody|everybody|anybody|those who|those that|the one who|for ever|has gone|" \
    "who comes|who has|what there is|under way|goes on|go on|going on|is told|are told|was told|be told|stands in|" \
    "stand in|asked for|at hand|hands out|hand out|handed out|hands over|hand over|handed over|any more|anew|" \
    "taken for|lets go|let go|of before|thereof|in the place of|that is there|shall|upon|whilst|in vain|" \
    "takes no room|take no room|takes room|once an action|waited out|whatever becomes|wants", word, "|")
  opening_count = split("What|Who|How", opening, "|")
  while ((getline path < pending) > 0) if (path !~ /^(#|$)/) hits[path] = 0
  close(pending)
}

function hit(text,   path) {
  for (path in hits) {
    if (file != path && index(file, path "/") != 1) continue
    hits[path]++
    hit_count++
    return
  }
  print file ":" FNR ": " text
  failed = 1
}

# A text in lower case, with a space around each word and each other character.
function normalized(text) {
  text = " " tolower(text) " "
  gsub(/[^a-z0-9_ \t]/, " & ", text)
  gsub(/[ \t]+/, " ", text)
  return text
}

# Looks for the words in a text that follows `tail`, and makes its end the next tail: a phrase can span two lines.
function search(text,   joined, place, start, i, part, count) {
  text = normalized(text)
  if (text == " ") { tail = ""; return }
  joined = tail == "" ? text : tail substr(text, 2)
  for (i = 1; i <= word_count; i++) {
    start = 0
    while (place = index(substr(joined, start + 1), " " word[i] " ")) {
      start += place + length(word[i])
      # A word of the tail was found in its own line.
      if (start + 1 > length(tail)) hit("\"" word[i] "\"")
    }
  }
  count = split(joined, part, " ")
  tail = " " part[count] " "
  if (count > 1) tail = " " part[count - 1] tail
}

function search_identifiers(code,   part, count, i) {
  count = split(code, part, "`")
  for (i = 2; i <= count; i += 2) {
    tail = ""
    search(part[i])
  }
  tail = ""
}

FNR == 1 {
  file = FILENAME
  tail = ""
  follows_summary = 0
}

file !~ /\.swift$/ { search($0); next }

# A comment begins with slashes at the beginning of a line or after a space.
match($0, /(^|[ \t])\/\/+/) {
  text = substr($0, RSTART + RLENGTH)
  code = substr($0, 1, RSTART - 1)
  is_documentation = code !~ /[^ \t]/ && $0 ~ /^[ \t]*\/\/\/([^\/]|$)/
  if (is_documentation && !follows_summary)
    for (i = 1; i <= opening_count; i++)
      if (text ~ "^ *" opening[i] "([^A-Za-z]|$)") hit("a summary that begins with \"" opening[i] "\"")
  follows_summary = is_documentation
  if (code ~ /[^ \t]/) search_identifiers(code)
  search(text)
  next
}

{
  follows_summary = 0
  search_identifiers($0)
}

END {
  for (path in hits) {
    if (hits[path]) { path_count++; continue }
    print path " has no hit any more: remove it from " pending
    failed = 1
  }
  if (path_count) print "note: " hit_count " places are still to be rewritten, in " path_count " paths of " pending
  exit failed
}
