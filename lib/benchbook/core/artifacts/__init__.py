"""Files that stages leave: facts, dataset, run folders, findings, pooled results, the record's index."""
