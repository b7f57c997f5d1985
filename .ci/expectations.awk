# Finds tests that expect nothing: neither they nor a function that they call has an expectation. A function of another file
# counts if all functions of its name have one. An error that is thrown is none: doubles throw errors as well.
#
# Finds exit tests without the trait .startsProcess, too: two of them at once can block all threads of the pool for ever.
# Adds a line to a function: whether it expects something, and what it calls.
function add(id, text,   word) {
  if (text ~ /processExitsWith/) exits[id] = 1
  if (text ~ /#expect|#require|Issue\.record|processExitsWith|forEveryInterleaving|suite\.check|requireSendable|assertIsolated/) expects[id] = 1
  while (match(text, /[A-Za-z_][A-Za-z0-9_]* ?[({]/)) {
    word = substr(text, RSTART, RLENGTH)
    text = substr(text, RSTART + RLENGTH)
    sub(/ ?[({]$/, "", word)
    calls[id] = calls[id] " " word
  }
}

FNR == 1 { open = 0; isTest = 0 }
{
  isComment = $0 ~ /^ *\/\//
  match($0, /^ */)
  depth = RLENGTH
  # Requirements of protocols have no body.
  while (open > 0 && !hasBody[open] && depth <= depths[open] && $0 !~ /^ *([){]|async|throws|where|->)/) open--
}
/@Test/ && !isComment { isTest = 1; traits = "" }
isTest { traits = traits $0 }
/@Suite/ && /\.startsProcess/ { isAlone[FILENAME] = 1 }
!isComment && match($0, /func (`[^`]*`|[A-Za-z_]+)/) {
  text = substr($0, RSTART + 5, RLENGTH - 5)
  gsub(/`/, "", text)
  if (isTest) {
    tests[++count] = text
    place[count] = FILENAME ":" FNR
    if (traits ~ /\.startsProcess/) isAlone["test " count] = 1
  }
  id = isTest ? "test " count : "helper " ++helpers
  if (!isTest) { names[helpers] = text; total[text]++ }
  file[id] = FILENAME
  ids[++open] = id
  depths[open] = depth
  hasBody[open] = isTest = 0
}
{
  for (level = 1; level <= open; level++) add(ids[level], $0)
  if (open > 0 && $0 ~ /{/) hasBody[open] = 1
  while (open > 0 && hasBody[open] && depth == depths[open] && $0 ~ /} *$/ && $0 !~ /^ *} .*{ *}? *$/) open--
}

END {
  do {
    changed = 0
    for (number = 1; number <= helpers; number++) {
      id = "helper " number
      if (!(id in expects) && expects_by_call(id)) expects[id] = 1
      if (id in expects && !(id in counted)) {
        counted[id] = changed = 1
        found[names[number]]++
        local[file[id], names[number]] = 1
      }
    }
  } while (changed)
  for (number = 1; number <= count; number++) {
    id = "test " number
    if (id in exits && !(id in isAlone) && !(file[id] in isAlone)) {
      printf "%s: %s (no .startsProcess)\n", place[number], tests[number]
      failed = 1
    }
    if (id in expects || expects_by_call(id)) continue
    printf "%s: %s\n", place[number], tests[number]
    failed = 1
  }
  exit failed
}

function expects_by_call(id,   words, length_, index_, word) {
  length_ = split(calls[id], words, " ")
  for (index_ = 1; index_ <= length_; index_++) {
    word = words[index_]
    if ((file[id], word) in local || word in found && found[word] == total[word]) return 1
  }
  return 0
}
