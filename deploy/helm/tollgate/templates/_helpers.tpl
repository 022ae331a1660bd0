{{- define "tollgate.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{- define "tollgate.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- $name := include "tollgate.name" . -}}
{{- ternary .Release.Name (printf "%s-%s" .Release.Name $name) (contains $name .Release.Name) | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* The table of ports and callers. */}}
{{- define "tollgate.table" -}}
{{- .Files.Get "files/callers.yaml" -}}
{{- end -}}

{{/* The seven services, in the order in which they depend on each other. */}}
{{- define "tollgate.services" -}}
auth,billing,ratelimit,catalog,inference-router,gateway,dashboard
{{- end -}}

{{/* (list $ NAME): the values of a service, over the defaults. As YAML. */}}
{{- define "tollgate.service" -}}
{{- $ := index . 0 -}}
{{- $values := index $.Values.services (index . 1) | default dict -}}
{{- mergeOverwrite (deepCopy $.Values.defaults) (deepCopy $values) | toYaml -}}
{{- end -}}

{{/* (list $ NAME): whether a service has a volume per replica. */}}
{{- define "tollgate.stateful" -}}
{{- $name := index . 1 -}}
{{- $service := include "tollgate.service" . | fromYaml -}}
{{- if or (eq $name "inference-router") $service.checkpoints -}}true{{- end -}}
{{- end -}}

{{/* (list $ COMPONENT): the labels of its selectors. */}}
{{- define "tollgate.selector" -}}
{{- $ := index . 0 -}}
app.kubernetes.io/name: {{ include "tollgate.name" $ }}
app.kubernetes.io/instance: {{ $.Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end -}}

{{/* (list $ COMPONENT): the labels of its objects. */}}
{{- define "tollgate.labels" -}}
{{- $ := index . 0 -}}
{{ include "tollgate.selector" . }}
app.kubernetes.io/version: {{ $.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ $.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" $.Chart.Name $.Chart.Version | replace "+" "_" }}
{{- with $.Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* (list $ IMAGE) */}}
{{- define "tollgate.image" -}}
{{- $ := index . 0 -}}
{{- $name := index . 1 -}}
{{- $base := printf "%s%s%s" $.Values.image.registry $.Values.image.prefix $name -}}
{{- with index $.Values.image.digests $name -}}
{{- printf "%s@%s" $base . -}}
{{- else -}}
{{- printf "%s:%s" $base ($.Values.image.tag | default $.Chart.AppVersion) -}}
{{- end -}}
{{- end -}}

{{- define "tollgate.secretName" -}}
{{- .Values.secrets.existingSecret | default (printf "%s-secrets" (include "tollgate.fullname" .)) -}}
{{- end -}}

{{/* (list $ OWNER): the Secret with the certificate of a service, or of "operator-NAME". */}}
{{- define "tollgate.tlsSecret" -}}
{{- $ := index . 0 -}}
{{- $prefix := printf "%s-tls-" (include "tollgate.fullname" $) -}}
{{- if eq $.Values.tls.mode "secrets" }}{{ $prefix = $.Values.tls.secrets.prefix | default $prefix }}{{ end -}}
{{- printf "%s%s" $prefix (index . 1) -}}
{{- end -}}

{{- define "tollgate.catalogConfigMap" -}}
{{- .Values.catalog.existingConfigMap | default (printf "%s-catalog-file" (include "tollgate.fullname" .)) -}}
{{- end -}}

{{/* The restricted pod security standard. (list UID) of the image's user. */}}
{{- define "tollgate.podSecurity" -}}
runAsNonRoot: true
runAsUser: {{ . }}
runAsGroup: {{ . }}
fsGroup: {{ . }}
fsGroupChangePolicy: OnRootMismatch
seccompProfile: {type: RuntimeDefault}
{{- end -}}

{{- define "tollgate.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end -}}

{{/* (list $ NAME): the addresses of a service's replicas, at a port of the table. */}}
{{- define "tollgate.target" -}}
{{- $ := index . 0 -}}
{{- $table := include "tollgate.table" $ | fromYaml -}}
{{- printf "%s-%s:%v" (include "tollgate.fullname" $) (index . 1) (index $table.ports (index . 2)) -}}
{{- end -}}

{{/* Fails when a required value is missing. */}}
{{- define "tollgate.check" -}}
{{- if not (or .Values.secrets.existingSecret .Values.secrets.generate) -}}
{{- fail "set secrets.existingSecret, or for trying secrets.generate" -}}
{{- end -}}
{{- if not .Values.trustedProxies -}}
{{- fail "set trustedProxies to the networks of the proxies in front, or to [none]" -}}
{{- end -}}
{{- if and (eq .Values.postgresql.mode "external") (not .Values.postgresql.host) -}}
{{- fail "set postgresql.host, or for trying postgresql.mode: builtin" -}}
{{- end -}}
{{- if and (hasPrefix "verify-" .Values.postgresql.sslMode) (eq .Values.postgresql.mode "external") (not .Values.postgresql.caSecret) -}}
{{- fail "set postgresql.caSecret, which postgresql.sslMode verify-full and verify-ca require, or postgresql.sslMode" -}}
{{- end -}}
{{- if and (eq .Values.redis.mode "external") (not .Values.redis.url) -}}
{{- fail "set redis.url, or for trying redis.mode: builtin" -}}
{{- end -}}
{{- if not (or .Values.catalog.file .Values.catalog.existingConfigMap .Values.simulatedEngines.enabled) -}}
{{- fail "set catalog.file or catalog.existingConfigMap, or for trying simulatedEngines.enabled" -}}
{{- end -}}
{{- if and .Values.ingress.enabled (not .Values.ingress.host) -}}
{{- fail "ingress wants ingress.host" -}}
{{- end -}}
{{- if and .Values.gatewayApi.enabled (not .Values.gatewayApi.parentRefs) -}}
{{- fail "gatewayApi wants gatewayApi.parentRefs" -}}
{{- end -}}
{{- if and (eq .Values.tls.mode "certManager") .Values.operator.enabled (not (has .Values.operator.name .Values.tls.certManager.operators)) -}}
{{- fail "operator.name is not in tls.certManager.operators" -}}
{{- end -}}
{{- end -}}
