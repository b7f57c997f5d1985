# Turns what PlexusBenchmarks writes with --json into a table in Markdown:
#   jq -r -f Tests/Benchmarks/table.jq figures.json
def digits: if . < 10 then . * 100 | round / 100 elif . < 100 then . * 10 | round / 10 else round end;
def spread: "\(.median | digits) (\(.minimum | digits)-\(.maximum | digits))";
"| Row | Against | Ours | Theirs | Ratio | Goal | |",
"|---|---|---|---|---|---|---|",
(.[] | (.theirs.median / .ours.median) as $ratio
  | "| `\(.name)` | \(.peer) | \(.ours | spread) | \(.theirs | spread) | \($ratio | digits) | \(.goal | digits) | \(
    if $ratio >= .goal then "met" else "**not met**" end) |")
