{{/* SPDX-License-Identifier: Apache-2.0 */}}
{{- define "driftd.fullname" -}}
{{- $name := .Release.Name -}}
{{- if not (contains .Chart.Name $name) }}{{ $name = printf "%s-%s" $name .Chart.Name }}{{ end -}}
{{- default $name .Values.fullnameOverride | trunc 50 | trimSuffix "-" -}}
{{- end -}}

{{/* (dict "root" $ "component" "operator") */}}
{{- define "driftd.name" -}}{{ include "driftd.fullname" .root }}-{{ .component }}{{- end -}}

{{- define "driftd.selector" -}}
app.kubernetes.io/name: driftd
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end -}}

{{- define "driftd.labels" -}}
{{ include "driftd.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ .root.Chart.Name }}-{{ .root.Chart.Version }}
{{- end -}}

{{- define "driftd.image" -}}
{{ .Values.image.repository }}:{{ default .Chart.AppVersion .Values.image.tag }}
{{- end -}}

{{/* The rules of a Role or ClusterRole of the plain manifests: what the chart grants is what they grant.
     (dict "root" $ "file" "files/rbac.yaml" "kind" "Role" "name" "driftd" "namespace" "default") */}}
{{- define "driftd.rules" -}}
{{- $found := dict -}}
{{- range splitList "\n---\n" (.root.Files.Get .file) -}}
{{- $document := fromYaml . -}}
{{- $metadata := default dict $document.metadata -}}
{{- if and (eq (default "" $document.kind) $.kind) (eq (default "" $metadata.name) $.name) (eq (default "" $metadata.namespace) (default "" $.namespace)) -}}
{{- $_ := set $found "rules" $document.rules -}}
{{- end -}}
{{- end -}}
{{- required (printf "%s has no %s %s" .file .kind .name) $found.rules | toYaml -}}
{{- end -}}

{{- define "driftd.podSecurity" -}}
runAsNonRoot: true
runAsUser: 64000
runAsGroup: 64000
fsGroup: 64000
seccompProfile: { type: RuntimeDefault }
{{- end -}}

{{- define "driftd.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: { drop: [ALL] }
{{- end -}}

{{- define "driftd.agentProbes" -}}
startupProbe:
  exec: { command: [driftd, --socket, /run/driftd/driftd.sock, status, --probe, live] }
  periodSeconds: 2
  failureThreshold: 60
  timeoutSeconds: 6
livenessProbe:
  exec: { command: [driftd, --socket, /run/driftd/driftd.sock, status, --probe, live] }
  periodSeconds: 20
  timeoutSeconds: 6
readinessProbe:
  exec: { command: [driftd, --socket, /run/driftd/driftd.sock, status, --probe, ready] }
  periodSeconds: 10
  timeoutSeconds: 6
{{- end -}}

{{- define "driftd.token" -}}
- name: token
  projected:
    defaultMode: 0440
    sources:
      - serviceAccountToken: { path: token, expirationSeconds: 3600 }
      - configMap: { name: kube-root-ca.crt, items: [{ key: ca.crt, path: ca.crt }] }
      - downwardAPI:
          items: [{ path: namespace, fieldRef: { fieldPath: metadata.namespace } }]
{{- end -}}

{{- define "driftd.secretMounts" -}}
{{- range . }}
- { name: {{ printf "secret-%s" . | trunc 63 | quote }}, mountPath: /run/secrets/{{ . }}, readOnly: true }
{{- end }}
{{- end -}}

{{- define "driftd.secretVolumes" -}}
{{- range . }}
- name: {{ printf "secret-%s" . | trunc 63 | quote }}
  secret: { secretName: {{ . | quote }}, defaultMode: 0440 }
{{- end }}
{{- end -}}

{{- define "driftd.placement" -}}
{{- with .nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* driftd.yaml of the agent of the cluster */}}
{{- define "driftd.clusterConfig" -}}
{{- $base := dict
  "agent" (dict "name" "cluster" "data_dir" "/var/lib/driftd" "plugin_dirs" (list "/usr/lib/driftd/providers") "jail" "required")
  "admin" (dict "listen" "127.0.0.1:7480" "socket" "/run/driftd/driftd.sock") -}}
{{- with .Values.cluster.grpc }}
{{- if .enabled }}
{{- $tls := dict "cert" "/run/tls/tls.crt" "key" "/run/tls/tls.key" "client_ca" "/run/tls/ca.crt" -}}
{{- $grpc := dict "listen" (printf "0.0.0.0:%d" (int .port)) "tls" $tls -}}
{{- if .clients }}{{ $_ := set $grpc "clients" .clients }}{{ end -}}
{{- $_ := set $base "grpc" $grpc -}}
{{- end }}
{{- end }}
{{- $config := mustMergeOverwrite $base (deepCopy .Values.cluster.config) -}}
{{- if .Values.cluster.kubernetes.enabled -}}
{{- $settings := mustMergeOverwrite (dict "service_account" "/var/run/secrets/kubernetes.io/serviceaccount" "namespaces" .Values.rbac.namespaces) (deepCopy .Values.cluster.kubernetes.settings) -}}
{{- $kubernetes := dict "name" "kubernetes" "provider" "k8s" "settings" $settings -}}
{{- $_ := set $config "backends" (prepend (default list $config.backends) $kubernetes) -}}
{{- end -}}
{{- toYaml $config -}}
{{- end -}}

{{/* driftd.yaml of the agents of the nodes */}}
{{- define "driftd.nodeConfig" -}}
{{- $base := dict
  "agent" (dict "name" "${env:NODE_NAME}" "node" "${env:NODE_NAME}" "data_dir" "/var/lib/driftd" "plugin_dirs" (list "/usr/lib/driftd/providers") "jail" "required")
  "admin" (dict "listen" "127.0.0.1:7480" "socket" "/run/driftd/driftd.sock") -}}
{{- toYaml (mustMergeOverwrite $base (deepCopy .Values.node.config)) -}}
{{- end -}}
