//go:build program

// The cluster's programs, named here so that `go mod tidy` keeps what they need.
package program

import (
	_ "github.com/ngaut/unistore/server"
	_ "github.com/tikv/pd/cmd/pd-server"
)
