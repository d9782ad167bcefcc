"""TiDB as one `tidb-server` with its storage inside it, built from its module where no program is named."""
