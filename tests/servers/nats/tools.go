// SPDX-License-Identifier: Apache-2.0

//go:build tools

// Package tools keeps the server's module among the requirements: build.sh builds its main package.
package tools

import _ "github.com/nats-io/nats-server/v2"
