// SPDX-License-Identifier: Apache-2.0

// client-go informers: the yardstick for memory. With a namespace as the last word they follow the Secrets in it, without
// one what the operator follows: PrismBackends (dynamic), Services, Secrets and ConfigMaps of all namespaces. Prints a
// line `synced N` with the number of objects when its caches are full, then waits for standard input to end.
package main

import (
	"fmt"
	"io"
	"os"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
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
	stop := make(chan struct{})
	var followed []cache.SharedIndexInformer
	if len(os.Args) > 4 {
		factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(os.Args[4]))
		followed = append(followed, factory.Core().V1().Secrets().Informer())
		factory.Start(stop)
	} else {
		factory := informers.NewSharedInformerFactory(client, 0)
		core := factory.Core().V1()
		followed = append(followed, core.Services().Informer(), core.Secrets().Informer(), core.ConfigMaps().Informer())
		factory.Start(stop)
		objects := dynamicinformer.NewDynamicSharedInformerFactory(dynamic.NewForConfigOrDie(config), 0)
		backends := schema.GroupVersionResource{Group: "prism.io", Version: "v1alpha1", Resource: "prismbackends"}
		followed = append(followed, objects.ForResource(backends).Informer())
		objects.Start(stop)
	}
	count := 0
	for _, informer := range followed {
		if !cache.WaitForCacheSync(stop, informer.HasSynced) {
			os.Exit(1)
		}
		count += len(informer.GetStore().ListKeys())
	}
	fmt.Printf("synced %d\n", count)
	_, _ = io.Copy(io.Discard, os.Stdin)
	close(stop)
}
