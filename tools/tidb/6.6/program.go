//go:build program

// The server's program, named here so that `go mod tidy` keeps what it needs.
package program

import _ "github.com/pingcap/tidb/tidb-server"
