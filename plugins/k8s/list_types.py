#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""list_types.py SERVER TOKEN [CA_FILE]: prints plugins/k8s/list_types.json, what the API server's OpenAPI v3 documents
say about the lists of the kinds that the provider reads. A test (integration.K8sListTypes) compares the file with the
documents of the API server that the tests build."""
import json
import ssl
import sys
import urllib.request

KINDS = {  # kind of the provider: document, kind of the API
    "secret": ("api/v1", "Secret"),
    "config_map": ("api/v1", "ConfigMap"),
    "service": ("api/v1", "Service"),
    "endpoint_slice": ("apis/discovery.k8s.io/v1", "EndpointSlice"),
    "ingress": ("apis/networking.k8s.io/v1", "Ingress"),
    "deployment": ("apis/apps/v1", "Deployment"),
    "stateful_set": ("apis/apps/v1", "StatefulSet"),
    "daemon_set": ("apis/apps/v1", "DaemonSet"),
    "network_policy": ("apis/networking.k8s.io/v1", "NetworkPolicy"),
    "role": ("apis/rbac.authorization.k8s.io/v1", "Role"),
    "role_binding": ("apis/rbac.authorization.k8s.io/v1", "RoleBinding"),
    "cluster_role": ("apis/rbac.authorization.k8s.io/v1", "ClusterRole"),
    "cluster_role_binding": ("apis/rbac.authorization.k8s.io/v1", "ClusterRoleBinding"),
    "horizontal_pod_autoscaler": ("apis/autoscaling/v2", "HorizontalPodAutoscaler"),
    "pod_disruption_budget": ("apis/policy/v1", "PodDisruptionBudget"),
    "service_account": ("api/v1", "ServiceAccount"),
    "cron_job": ("apis/batch/v1", "CronJob"),
    "job": ("apis/batch/v1", "Job"),
    "persistent_volume_claim": ("api/v1", "PersistentVolumeClaim"),
    "resource_quota": ("api/v1", "ResourceQuota"),
    "limit_range": ("api/v1", "LimitRange"),
    "storage_class": ("apis/storage.k8s.io/v1", "StorageClass"),
    "mutating_webhook_configuration": ("apis/admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration"),
    "validating_webhook_configuration": ("apis/admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration"),
    "custom_resource_definition": ("apis/apiextensions.k8s.io/v1", "CustomResourceDefinition"),
    "ingress_class": ("apis/networking.k8s.io/v1", "IngressClass"),
    "priority_class": ("apis/scheduling.k8s.io/v1", "PriorityClass"),
}
REF = "#/components/schemas/"


def fetch(server, token, ca_file, path):
    context = ssl.create_default_context(cafile=ca_file)
    if ca_file is None:  # a server of a test, on this machine
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    request = urllib.request.Request(f"{server}/openapi/v3/{path}", headers={"Authorization": f"Bearer {token}"})
    with urllib.request.urlopen(request, context=context) as answer:
        return json.load(answer)["components"]["schemas"]


def reference(schema):
    """The name of the type that a value has; None if it has none of its own."""
    ref = schema.get("$ref") or (schema.get("allOf") or [{}])[0].get("$ref", "")
    return ref.removeprefix(REF) or None


def field_of(schema, schemas, types):
    field = {}
    items = schema.get("items")
    of = reference(schema if items is None else items)
    if of:
        collect(of, schemas, types)
        field["of"] = of
    elif isinstance(schema.get("additionalProperties"), dict):
        sys.exit("a map without a type of its own: extend this script")
    if schema.get("x-kubernetes-list-type") == "set":
        field["set"] = True
    if schema.get("x-kubernetes-list-type") == "map":
        field["keys"] = schema["x-kubernetes-list-map-keys"]
    if items is not None and "x-kubernetes-list-type" not in schema and "x-kubernetes-patch-merge-key" in schema:
        field["keys"] = [schema["x-kubernetes-patch-merge-key"]]
    return field


def collect(name, schemas, types):
    if name in types:
        return
    types[name] = {}
    for member, schema in schemas[name].get("properties", {}).items():
        others = schema.get("additionalProperties")
        if isinstance(others, dict):  # an object whose members all have one type
            inner = f"{name}.{member}"
            types[inner] = {"*": field_of(others, schemas, types)} if reference(others) else {}
            types[name][member] = {"of": inner}
        else:
            types[name][member] = field_of(schema, schemas, types)


def useful(types):
    """The types that lead to a list with a meaning, with their fields that do."""
    good = set()
    while True:
        more = {name for name, fields in types.items()
                if any("keys" in f or "set" in f or f.get("of") in good for f in fields.values())}
        if more == good:
            break
        good = more
    out = {}
    for name in sorted(good):
        fields = {m: {k: v for k, v in f.items() if k != "of" or v in good} for m, f in types[name].items()}
        out[name] = {m: f for m, f in sorted(fields.items()) if f}
    return out


def main():
    server, token, ca_file = (sys.argv[1:] + [None])[:3]
    documents = {path: fetch(server, token, ca_file, path) for path in {path for path, _ in KINDS.values()}}
    kinds, types = {}, {}
    for kind, (path, api_kind) in KINDS.items():
        schemas = documents[path]
        (name,) = [n for n, schema in schemas.items()
                   if [one["kind"] for one in schema.get("x-kubernetes-group-version-kind", [])] == [api_kind]]
        collect(name, schemas, types)
        kinds[kind] = name
    lines = [",\n".join(f"    {json.dumps(name)}: {json.dumps(value)}" for name, value in part.items())
             for part in (kinds, useful(types))]
    print(f'{{\n  "kinds": {{\n{lines[0]}\n  }},\n  "types": {{\n{lines[1]}\n  }}\n}}')


main()
