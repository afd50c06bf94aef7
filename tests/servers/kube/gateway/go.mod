// Its CustomResourceDefinitions are used, not its code.
module driftd/tests/servers/kube/gateway

go 1.24.0

require sigs.k8s.io/gateway-api v1.4.1
