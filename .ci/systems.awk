# Every choice between the C libraries of the systems has a branch for each of them, or an #else. Modules that are built for
# WebAssembly have one for it too, unless the file leaves that system out.

function report(text) {
  print FILENAME ":" text
  failed = 1
}

FNR == 1 { depth = 0; leavesOut = 0; isForWeb = FILENAME ~ /^Sources\/Plexus(Support|Testing)?\// }

/^#if !os\(WASI\)$/ { leavesOut = 1 }

/^ *#if / { depth++; names[depth] = ""; isOpen[depth] = 0; count[depth] = 0; line[depth] = FNR }

/^ *#(if|elseif) / {
  library[depth] = ""
  if ($0 ~ /canImport\((Darwin|Glibc|Musl|Android|WASILibc)\)$/ && NF == 2) {
    library[depth] = $2
    gsub(/^canImport\(|\)$/, "", library[depth])
    names[depth] = names[depth] " " library[depth] " "
    count[depth]++
  } else {
    isOpen[depth] = 1
  }
}

/^ *#else *$/ { library[depth] = ""; isOpen[depth] = 1 }

/^ *((public|package|internal) )?import (Darwin|Glibc|Musl|Android|WASILibc)$/ {
  if (depth == 0 || library[depth] != $NF) report(FNR ": imports " $NF " without asking for it")
}

/^ *#endif/ {
  if (count[depth] > 1 && !isOpen[depth]) {
    total = split("Darwin Glibc Musl Android" (isForWeb && !leavesOut ? " WASILibc" : ""), wanted, " ")
    for (i = 1; i <= total; i++) {
      if (!index(names[depth], " " wanted[i] " ")) report(line[depth] ": has no branch for " wanted[i])
    }
  }
  depth--
}

END { exit failed }
