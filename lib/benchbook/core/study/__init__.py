"""Study files: sections, arms, workloads, descriptors of engines and proxies, and the loader."""
