//go:build tools

// Package parts names the programs this module builds, so that `go mod tidy` keeps their requirements.
package parts

import (
	_ "sigs.k8s.io/kwok/cmd/kwok"
)
