// SPDX-License-Identifier: Apache-2.0

// etcd as its own project builds it: newer than Debian's, WatchList needs 3.5.
package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
)

func main() {
	etcdmain.Main(os.Args)
}
