# Writes the article on guarantees, and an index of their tests, from the source.
# Usage: awk -v article=FILE -v tests=FILE -f .ci/guarantees.awk FILE...
#
# The files are those that declare guarantees, in order, and those with tests. A test counts if a function follows
# @Test, is not commented out, and neither it nor its suite is disabled. Nothing is written if a guarantee has no such
# test.

function problem(place, text) {
  print place ": " text
  failed = 1
}

# The declaration of a guarantee on one line: its text is between quotation marks.
function declare(text,   name, topic, sentence) {
  name = topic = text
  sub(/^.*static let /, "", name)
  sub(/ *=.*/, "", name)
  sub(/^[^(]*\( */, "", topic)
  sub(/,.*/, "", topic)
  if (!match(text, /".*"/)) { problem(place, "a guarantee has no sentence"); return }
  sentence = substr(text, RSTART, RLENGTH)
  gsub(/^"+|"+$/, "", sentence)
  if (sentence ~ /\\/) problem(place, "an escaped character is not understood here")
  names[++guarantee_count] = name
  topics[guarantee_count] = topic
  sentences[guarantee_count] = sentence
  places[name] = place
}

# The traits of a test that has this name.
function read_traits(traits, test,   name) {
  while (match(traits, /\.guarantee\( *\.[A-Za-z0-9]+/)) {
    name = substr(traits, RSTART, RLENGTH)
    traits = substr(traits, RSTART + RLENGTH)
    sub(/^.*\./, "", name)
    named++
    users[name] = users[name] FILENAME "\t" test "\n"
    user[named] = name
    user_place[named] = FILENAME ":" FNR
  }
}

# Writes a text in lines of at most 120 characters, all but the first with an indentation.
function wrap(text, indentation, file,   word, count, line, i) {
  count = split(text, word, " ")
  line = word[1]
  for (i = 2; i <= count; i++) {
    if (length(line " " word[i]) <= 120) { line = line " " word[i]; continue }
    print line >file
    line = indentation word[i]
  }
  print line >file
}

# The rows of a guarantee: one for each file.
function write_rows(sentence, users,   line, count, cell, i, file, row) {
  count = split(users, line, "\n") - 1
  for (i = 1; i <= count; i++) {
    split(line[i], cell, "\t")
    if (cell[1] != file) {
      if (file != "") print row " | `" file "` |" >tests
      row = "| " (file == "" ? sentence " " : "") "| `" cell[2] "`"
      file = cell[1]
    } else row = row ", `" cell[2] "`"
  }
  print row " | `" file "` |" >tests
}

FNR == 1 { is_declaration = is_suite = is_test = suite_is_disabled = 0 }

/^ *\/\// { next }

/^ *case [a-z][A-Za-z]* = "/ && FILENAME ~ /\/Guarantee\.swift$/ {
  split($0, part, "\"")
  headings["." $2] = part[2]
  order[++topic_count] = "." $2
}

/static let .*= Guarantee\(/ { is_declaration = 1; declaration = ""; place = FILENAME ":" FNR }

is_declaration {
  line = $0
  sub(/^ +/, "", line)
  ends = line ~ /\)$/ && (line == ")" || line ~ /"\)$/)
  sub(/\\$/, "", line)
  declaration = declaration line
  if (ends) { declare(declaration); is_declaration = 0 }
  next
}

/@Suite/ { is_suite = 1 }
is_suite && !/@Test/ {
  if (/\.disabled\(/) suite_is_disabled = 1
  if (/\.guarantee\(/) problem(FILENAME ":" FNR, "a guarantee is a trait of tests, not of a suite")
}
/(struct|class|enum|actor|extension) / { is_suite = 0 }

/@Test/ { is_test = 1; is_disabled = suite_is_disabled; traits = "" }
/\.disabled\(/ { is_disabled = 1 }
is_test { traits = traits $0 }
/(^| )func / {
  if (is_test && !is_disabled && match(traits, /func (`[^`]+`|[A-Za-z0-9_]+)/)) {
    test = substr(traits, RSTART + 5, RLENGTH - 5)
    gsub(/`/, "", test)
    read_traits(substr(traits, 1, RSTART - 1), test)
  }
  is_test = 0
}

END {
  if (!guarantee_count || !topic_count) problem("Tests/TestSupport/Guarantees", "no guarantee was found")
  for (i = 1; i <= guarantee_count; i++) {
    if (!(topics[i] in headings)) problem(places[names[i]], "there is no topic " topics[i])
    if (!(names[i] in users)) problem(places[names[i]], "no test that is enabled has ." names[i])
  }
  for (i = 1; i <= named; i++) if (!(user[i] in places)) problem(user_place[i], "there is no guarantee ." user[i])
  if (failed) exit 1
  print "# Relying on Plexus\n\nLook up what the library guarantees, topic by topic.\n\n## Overview\n" >article
  wrap("Each guarantee is declared in the repository as a trait of its tests, which `.ci/check guarantees` lists in `.build/guarantees-index.md`." \
    " Guarantees about every order are tested in each order in which tasks can run, up to a number of deviations from" \
    " first in, first out.", "", article)
  print "# Guarantees and their tests\n" >tests
  print "A row without a guarantee continues the row above. Run a test by its name:\n" >tests
  print "```sh\nswift test --filter \"a hit does not suspend\"\n```\n" >tests
  wrap("The contract of broadcasters is tested with every kind of source, and most of the contract of caches with" \
    " `Multiplexer` and `MultiplexerMap`.", "", tests)
  for (i = 1; i <= topic_count; i++) {
    heading = "\n## " headings[order[i]] "\n"
    print heading >article
    print heading "\n| You can rely on | Test | File |\n|---|---|---|" >tests
    for (k = 1; k <= guarantee_count; k++) {
      if (topics[k] != order[i]) continue
      wrap("- " sentences[k], "  ", article)
      write_rows(sentences[k], users[names[k]])
    }
  }
  print "note: " guarantee_count " guarantees, which are traits of tests " named " times"
}
