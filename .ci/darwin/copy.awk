# Copies sources to a folder, with the conditions as they are on one of Apple's systems. Usage: awk -v folder=FOLDER
# -v os=macOS -f copy.awk FILE... Lines keep their numbers.
#
# What can be imported depends on the modules that the compiler finds: only what Linux has, and they do not, is decided here.

FNR == 1 { close(copy); copy = folder "/" FILENAME }

/^ *#(if|elseif) / {
  gsub(/canImport\((Glibc|Musl|Android|WASILibc|FoundationEssentials|FoundationNetworking|SwiftOverlayShims)\)/, "false")
  while (match($0, /os\([A-Za-z]+\)/)) {
    asked = substr($0, RSTART + 3, RLENGTH - 4)
    $0 = substr($0, 1, RSTART - 1) (asked == os ? "true" : "false") substr($0, RSTART + RLENGTH)
  }
}

/^ *((public|package|internal) )?import Foundation$/ { sub(/Foundation$/, "AppleFoundation") }

# The casts to types of the C library of Apple's systems: see ImageIO.swiftinterface.
{ gsub(/ as CFData/, ".asCFData"); gsub(/ as CFDictionary/, ".asCFDictionary") }

{ gsub(/Foundation\./, "AppleFoundation."); print > copy }
