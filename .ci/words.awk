# Finds numbers that do not fit into Int on machines of 32 bits (watchOS): literals, products and shifts of literals beyond
# 31 bits, and conversions to Int that trap there. A line that names a wider type, such as `as Int64`, says that it means it;
# so does the opening line of a block for the bit patterns (0x...) in it.
function value(text,   digits, result, index_) {
  gsub(/_/, "", text)
  if (text !~ /^0x/) return text + 0
  digits = tolower(substr(text, 3))
  for (index_ = 1; index_ <= length(digits); index_++)
    result = result * 16 + index("0123456789abcdef", substr(digits, index_, 1)) - 1
  return result
}

# The value of numbers between `*` and `<<`; what is no number counts as 1.
function product(text,   parts, count, index_, result, isShift) {
  gsub(/<</, " << ", text)
  gsub(/\*/, " * ", text)
  count = split(text, parts, " ")
  result = value(parts[1])
  for (index_ = 2; index_ <= count; index_++) {
    if (parts[index_] == "<<") isShift = 1
    else if (parts[index_] == "*") isShift = 0
    else if (parts[index_] ~ /^[0-9]/) result *= isShift ? 2 ^ value(parts[index_]) : value(parts[index_])
  }
  return result
}

function complain(what) {
  printf "%s:%d: %s: %s\n", FILENAME, FNR, what, $0
  failed = 1
}

FNR == 1 { isText = 0; block = -1 }

{
  line = $0
  if (line ~ /"""/) { isText = !isText; next }
  if (isText) next
  gsub(/"([^"\\]|\\.)*"/, "\"\"", line)
  sub(/\/\/.*/, "", line)
  if (line ~ /^ *$/) next
  match(line, /^ */)
  depth = RLENGTH
  if (block >= 0 && depth <= block) block = -1
  isWide = line ~ /Int64|UInt32|Nanoseconds|Double|TimeInterval|1e[0-9]|0x1p/
  rest = " " line
  gsub(/ *<< */, "<<", rest)
  gsub(/ *\* */, "*", rest)
  while (match(rest, /[^A-Za-z0-9_.][0-9][0-9a-fA-Fx_*<]*/)) {
    text = substr(rest, RSTART + 1, RLENGTH - 1)
    rest = substr(rest, RSTART + RLENGTH)
    isPattern = text ~ /^0x[0-9a-fA-F_]+$/
    if (product(text) > 2147483647 && !isWide && !(isPattern && block >= 0)) complain("More than 31 bits")
  }
  if (line ~ /[^A-Za-z0-9]Int\([^():]*(UInt32|U?Int64|timeIntervalSince1970|st_size|components\.seconds)/)
    complain("A conversion that can trap")
  if (isWide && block < 0 && line ~ /[[({]( *[a-z, ]+ in)? *$/) block = depth
}

END { exit failed }
