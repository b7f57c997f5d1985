/// Filled in with the request core.
func requestingComparisons() -> [Comparison] { [] }
