{{/* The name of everything that a release has. */}}
{{- define "caughtup.fullname" -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- $full := ternary .Release.Name (printf "%s-%s" .Release.Name $name) (contains $name .Release.Name) -}}
{{- default $full .Values.fullnameOverride | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{/* What Services, policies and monitors find the pods by; it never changes. */}}
{{- define "caughtup.selector" -}}
app.kubernetes.io/name: {{ default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "caughtup.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 }}
{{ include "caughtup.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end -}}

{{- define "caughtup.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "caughtup.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- define "caughtup.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ default .Chart.AppVersion .Values.image.tag }}
{{- end -}}
{{- end -}}

{{/* active or shared: what the pods do together. */}}
{{- define "caughtup.workers" -}}
{{- default "active" .Values.settings.workers -}}
{{- end -}}

{{/* The headless Service by which each pod of a StatefulSet has a name of its own. */}}
{{- define "caughtup.pods" -}}
{{- $name := include "caughtup.fullname" . -}}
{{- if gt (len $name) 52 -}}
{{- fail (printf "%s has more than 52 characters, too many for a StatefulSet's pods: set fullnameOverride" $name) -}}
{{- end -}}
{{- $name }}-pods
{{- end -}}

{{/* HTTP, or HTTPS where the settings name a certificate. */}}
{{- define "caughtup.scheme" -}}
{{- ternary "HTTPS" "HTTP" (not (empty .Values.settings.web_tls_certificate)) -}}
{{- end -}}

{{/* caughtup.toml: the settings, and where the chart has it listen. */}}
{{- define "caughtup.toml" -}}
{{- $name := include "caughtup.fullname" . -}}
{{- $inside := printf "%s.%s.svc" $name .Release.Namespace -}}
{{- $hosts := list $name (printf "%s.%s" $name .Release.Namespace) $inside (printf "%s.cluster.local" $inside) -}}
{{- $settings := deepCopy .Values.settings -}}
{{- $_ := set $settings "web_allowed_hosts" (concat (default list $settings.web_allowed_hosts) $hosts) -}}
{{- $_ := set $settings "web_host" "0.0.0.0" -}}
{{- toToml $settings -}}
{{- end -}}
