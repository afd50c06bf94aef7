// SPDX-License-Identifier: Apache-2.0

// A client-go informer on all Secrets of a namespace: the yardstick for memory. Prints a line `synced N` when its cache
// is full, then waits for standard input to end.
package main

import (
	"fmt"
	"io"
	"os"

	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

func main() {
	config := &rest.Config{
		Host:            os.Args[1],
		TLSClientConfig: rest.TLSClientConfig{CAFile: os.Args[2]},
		BearerTokenFile: os.Args[3],
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(os.Args[4]))
	informer := factory.Core().V1().Secrets().Informer()
	stop := make(chan struct{})
	factory.Start(stop)
	if !cache.WaitForCacheSync(stop, informer.HasSynced) {
		os.Exit(1)
	}
	fmt.Printf("synced %d\n", len(informer.GetStore().ListKeys()))
	_, _ = io.Copy(io.Discard, os.Stdin)
	close(stop)
}
