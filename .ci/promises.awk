# Writes the article on guarantees from the index of their tests. Usage: awk -f .ci/promises.awk Tests/guarantees.md

BEGIN {
  FS = "|"
  print "# Relying on Plexus\n\nLook up what the library guarantees, topic by topic.\n"
  print "## Overview\n"
  print "Each guarantee has tests, which `Tests/guarantees.md` in the repository lists by name. Guarantees about every order"
  print "are tested in each order in which tasks can run, up to a number of deviations from first in, first out."
}

/^## / { heading = $0; next }

/^\|/ {
  if ($2 ~ /^ You can rely on $/ || $2 ~ /^-+$/ || $2 ~ /^ *$/) next
  promise = $2
  gsub(/^ +| +$/, "", promise)
  # The case of the contract of caches that the tests are named after.
  sub(/^R[0-9]+: /, "", promise)
  if (heading != "") { print "\n" heading "\n"; heading = "" }
  print_item("- " toupper(substr(promise, 1, 1)) substr(promise, 2))
}

function print_item(text,   word, count, line, i) {
  count = split(text, word, " ")
  line = word[1]
  for (i = 2; i <= count; i++) {
    if (length(line) + 1 + length(word[i]) > 120) { print line; line = " " }
    line = line " " word[i]
  }
  print line
}
