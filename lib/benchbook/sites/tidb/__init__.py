"""TiDB as one `tidb-server` with its storage inside it, built from its module by default."""
