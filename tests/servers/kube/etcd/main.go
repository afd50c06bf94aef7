// SPDX-License-Identifier: Apache-2.0

// etcd as its own project builds it: newer than Debian's, WatchList needs 3.5.
package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
	"go.etcd.io/etcd/server/v3/storage/wal"
)

func main() {
	wal.SegmentSizeBytes = 4 << 20 // twice so much is allocated at once, by each test that runs a cluster
	etcdmain.Main(os.Args)
}
