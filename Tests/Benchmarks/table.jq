# Turns what PlexusBenchmarks writes with --json into a table in Markdown:
#   jq -r -f Tests/Benchmarks/table.jq figures.json
def digits: if . < 10 then . * 100 | round / 100 elif . < 100 then . * 10 | round / 10 else round end;
def spread: "\(.median | digits) (\(.minimum | digits)-\(.maximum | digits))";
"| Row | Against | Ours | Theirs | Ratio | Goal | |",
"|---|---|---|---|---|---|---|",
(.[] | (if .ours.median > 0 then .theirs.median / .ours.median else null end) as $ratio
  | "| `\(.name)` | \(.peer) | \(.ours | spread) | \(.theirs | spread) | \(
    if $ratio then $ratio | digits else "-" end) | \(if .goal > 0 then .goal | digits else "-" end) | \(
    if .goal <= 0 then "" elif $ratio == null or $ratio >= .goal then "met" else "**not met**" end) |")
