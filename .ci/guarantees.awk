# Looks up every test that the index of guarantees names. Usage: awk -f .ci/guarantees.awk INDEX
#
# A line of a table has three cells: the promise, the names of its tests in backquotes, and the file that holds them.
# A test counts if a function of that very name follows @Test, is not disabled and not commented out.

function problem(text) {
  print FILENAME ":" FNR ": " text
  failed = 1
}

function read_tests(file,   line, name, is_test, is_disabled, result) {
  while ((result = (getline line < file)) > 0) {
    if (line ~ /^ *\/\//) continue
    if (line ~ /@Test/) { is_test = 1; is_disabled = 0 }
    if (line ~ /\.disabled\(/) is_disabled = 1
    if (line !~ /(^| )func /) continue
    if (is_test && !is_disabled && match(line, /func `[^`]+`/))
      tests[file, substr(line, RSTART + 6, RLENGTH - 7)] = 1
    is_test = 0
  }
  close(file)
  known[file] = result == 0 ? "read" : "missing"
}

BEGIN { FS = "|" }

/^## / { section = $0; next }

/^\|/ {
  if ($2 ~ /^ You can rely on $/ || $2 ~ /^-+$/) next
  if (NF != 5) { problem("a line of a table has three cells: promise, tests, file"); next }
  if ($2 !~ /^ *$/) { promises++; in_promise[section]++ }
  else if (!in_promise[section]) problem("the first line of a table has no promise")
  if (split($4, file, "`") != 3) { problem("there is no file in the third cell"); next }
  if (!(file[2] in known)) read_tests(file[2])
  if (known[file[2]] == "missing") { problem("there is no file " file[2]); next }
  count = split($3, name, "`")
  if (count < 3 || count % 2 == 0) { problem("there is no test in the second cell"); next }
  for (index_ = 2; index_ < count; index_ += 2) {
    named++
    if (!((file[2], name[index_]) in tests))
      problem("there is no test `" name[index_] "` in " file[2])
  }
}

END {
  if (!promises) { print FILENAME ": no promise was found"; failed = 1 }
  print promises + 0 " promises, " named + 0 " names of tests"
  exit failed
}
