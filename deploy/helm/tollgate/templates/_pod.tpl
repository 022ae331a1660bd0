{{/* The keys of the Secret that a service reads, as files in /run/secrets. (list $ NAME) */}}
{{- define "tollgate.secretKeys" -}}
{{- $ := index . 0 -}}
{{- $name := index . 1 -}}
{{- $service := include "tollgate.service" . | fromYaml -}}
{{- $keys := list -}}
{{- if eq $name "auth" }}{{ $keys = list "pepper" "postgres_password" "seal_key" }}{{ end -}}
{{- if and (eq $name "auth") $service.checkpoints }}{{ $keys = append $keys "audit_checkpoint_key" }}{{ end -}}
{{- if eq $name "billing" }}{{ $keys = list "postgres_password" "webhook_seal_key" }}{{ end -}}
{{- if and (eq $name "billing") $service.checkpoints }}{{ $keys = append $keys "ledger_checkpoint_key" }}{{ end -}}
{{- if and (eq $name "ratelimit") (or (eq $.Values.redis.mode "builtin") $.Values.redis.password) }}{{ $keys = list "redis_password" }}{{ end -}}
{{- if eq $name "gateway" }}{{ $keys = list "idempotency_key" "reasoning_key" }}{{ end -}}
{{- if eq $name "dashboard" }}{{ $keys = list "dashboard_token" }}{{ end -}}
{{- concat $keys $service.extraSecretKeys | join "," -}}
{{- end -}}

{{/* (list $ KEYS) */}}
{{- define "tollgate.secretsVolume" -}}
- name: secrets
  secret:
    secretName: {{ include "tollgate.secretName" (index . 0) }}
    defaultMode: 0440
    items:
      {{- range splitList "," (index . 1) }}
      - {key: {{ . }}, path: {{ . }}}
      {{- end }}
{{- end -}}

{{/* (list $ NAME): the volumes of a service besides those of its own values. */}}
{{- define "tollgate.volumes" -}}
{{- $ := index . 0 -}}
{{- $name := index . 1 -}}
{{- $service := include "tollgate.service" . | fromYaml -}}
- name: config
  configMap: {name: {{ include "tollgate.fullname" $ }}-{{ $name }}}
- name: tmp
  emptyDir: {}
{{- with include "tollgate.secretKeys" . }}
{{ include "tollgate.secretsVolume" (list $ .) }}
{{- end }}
{{- if ne $.Values.tls.mode "off" }}
- name: tls
  secret: {secretName: {{ include "tollgate.tlsSecret" . }}, defaultMode: 0440}
{{- end }}
{{- with $service.tlsSecret }}
- name: edge-tls
  secret: {secretName: {{ . }}, defaultMode: 0440}
{{- end }}
{{- if eq $name "catalog" }}
- name: catalog
  configMap: {name: {{ include "tollgate.catalogConfigMap" $ }}}
{{- with $.Values.catalog.engineKeysSecret }}
- name: engine-keys
  secret: {secretName: {{ . }}, defaultMode: 0440}
{{- end }}
{{- end }}
{{- if eq $name "gateway" }}
# The last catalog, for a restart while its service is unreachable.
- name: data
  emptyDir: {}
{{- end }}
{{- include "tollgate.authorityVolumes" . }}
{{- end -}}

{{/* The authorities of a service's dependencies outside. (list $ NAME) */}}
{{- define "tollgate.authorityVolumes" -}}
{{- $ := index . 0 -}}
{{- if and (has (index . 1) (list "auth" "billing")) $.Values.postgresql.caSecret (eq $.Values.postgresql.mode "external") }}
- name: postgresql-ca
  secret: {secretName: {{ $.Values.postgresql.caSecret }}, defaultMode: 0440, items: [{key: ca.crt, path: ca.crt}]}
{{- end }}
{{- if and (eq (index . 1) "ratelimit") $.Values.redis.caSecret (eq $.Values.redis.mode "external") }}
- name: redis-ca
  secret: {secretName: {{ $.Values.redis.caSecret }}, defaultMode: 0440, items: [{key: ca.crt, path: ca.crt}]}
{{- end }}
{{- end -}}

{{/* (list $ NAME) */}}
{{- define "tollgate.mounts" -}}
{{- $ := index . 0 -}}
{{- $name := index . 1 -}}
{{- $service := include "tollgate.service" . | fromYaml -}}
- {name: config, mountPath: /etc/tollgate, readOnly: true}
- {name: tmp, mountPath: /tmp}
{{- if include "tollgate.secretKeys" . }}
- {name: secrets, mountPath: /run/secrets, readOnly: true}
{{- end }}
{{- if ne $.Values.tls.mode "off" }}
- {name: tls, mountPath: /run/tls, readOnly: true}
{{- end }}
{{- if $service.tlsSecret }}
- {name: edge-tls, mountPath: /run/edge-tls, readOnly: true}
{{- end }}
{{- if eq $name "catalog" }}
- {name: catalog, mountPath: /run/catalog, readOnly: true}
{{- if $.Values.catalog.engineKeysSecret }}
- {name: engine-keys, mountPath: /run/engine-keys, readOnly: true}
{{- end }}
{{- end }}
{{- if or (eq $name "gateway") (include "tollgate.stateful" .) }}
- {name: data, mountPath: /var/lib/tollgate}
{{- end }}
{{- range include "tollgate.authorityVolumes" . | fromYamlArray }}
- {name: {{ .name }}, mountPath: /run/{{ .name }}, readOnly: true}
{{- end }}
{{- end -}}

{{/* Where replicas run. (list $ NAME) */}}
{{- define "tollgate.placement" -}}
{{- $ := index . 0 -}}
{{- $name := index . 1 -}}
{{- $service := include "tollgate.service" . | fromYaml -}}
{{- if $service.affinity }}
affinity: {{- toYaml $service.affinity | nindent 2 }}
{{- else if eq $service.antiAffinity "hard" }}
affinity:
  podAntiAffinity:
    requiredDuringSchedulingIgnoredDuringExecution:
      - topologyKey: kubernetes.io/hostname
        labelSelector: {matchLabels: {{- include "tollgate.selector" . | fromYaml | toJson | printf " %s" }}}
{{- else if eq $service.antiAffinity "soft" }}
affinity:
  podAntiAffinity:
    preferredDuringSchedulingIgnoredDuringExecution:
      - weight: 100
        podAffinityTerm:
          topologyKey: kubernetes.io/hostname
          labelSelector: {matchLabels: {{- include "tollgate.selector" . | fromYaml | toJson | printf " %s" }}}
{{- end }}
{{- with $service.topologySpread }}
topologySpreadConstraints:
  {{- range . }}
  - topologyKey: {{ . }}
    maxSkew: 1
    whenUnsatisfiable: ScheduleAnyway
    labelSelector: {matchLabels: {{- include "tollgate.selector" (list $ $name) | fromYaml | toJson | printf " %s" }}}
  {{- end }}
{{- end }}
{{- with $service.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $service.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $service.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- end -}}

{{/* Seconds from SIGTERM until the pod is killed: longer than its process may drain. (list $ NAME) */}}
{{- define "tollgate.grace" -}}
{{- $ := index . 0 -}}
{{- $config := include "tollgate.config" . | fromYaml -}}
{{- add (int $.Values.streams.preStopSeconds) (int ($config.host.drain_seconds | default 30)) 15 -}}
{{- end -}}

{{- define "tollgate.probes" -}}
startupProbe:
  httpGet: {path: /healthz, port: ops}
  periodSeconds: 1
  failureThreshold: 60
livenessProbe:
  httpGet: {path: /healthz, port: ops}
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 3
# Served by a separate loop, which fails when another loop hangs: one failure is enough (docs/operations.md, "The cluster").
readinessProbe:
  httpGet: {path: /readyz, port: ops}
  periodSeconds: 1
  timeoutSeconds: 1
  failureThreshold: 1
{{- end -}}

{{/* (list $ NAME): the template of a service's pods. */}}
{{- define "tollgate.pod" -}}
{{- $ := index . 0 -}}
{{- $name := index . 1 -}}
{{- $service := include "tollgate.service" . | fromYaml -}}
{{- $table := include "tollgate.table" $ | fromYaml -}}
metadata:
  labels:
    {{- include "tollgate.labels" . | nindent 4 }}
    {{- with $service.podLabels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  annotations:
    kubectl.kubernetes.io/default-container: {{ $name }}
    # Processes read their configuration at the start.
    tollgate/config: {{ include "tollgate.config" . | sha256sum | trunc 16 | quote }}
    {{- with $service.podAnnotations }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
spec:
  serviceAccountName: {{ include "tollgate.fullname" $ }}-{{ $name }}
  automountServiceAccountToken: false
  enableServiceLinks: false
  terminationGracePeriodSeconds: {{ include "tollgate.grace" . }}
  securityContext: {{- include "tollgate.podSecurity" 10001 | nindent 4 }}
  {{- with $.Values.image.pullSecrets }}
  imagePullSecrets:
    {{- range . }}
    - name: {{ . }}
    {{- end }}
  {{- end }}
  {{- include "tollgate.placement" . | nindent 2 }}
  containers:
    - name: {{ $name }}
      image: {{ include "tollgate.image" . }}
      imagePullPolicy: {{ $.Values.image.pullPolicy }}
      securityContext: {{- include "tollgate.containerSecurity" $ | nindent 8 }}
      ports:
        {{- range index $table.listens $name }}
        - {name: {{ . }}, containerPort: {{ index $table.ports . }}}
        {{- end }}
        {{- if $service.webhooks }}
        - {name: webhooks, containerPort: {{ $table.ports.webhooks }}}
        {{- end }}
      {{- $env := $service.extraEnv }}
      {{- if and (eq $name "catalog") $.Values.simulatedEngines.enabled }}
      {{- range $number := list 1 2 }}
      {{- $url := printf "http://%s-engine-sim-%d:%v" (include "tollgate.fullname" $) $number $table.ports.engine }}
      {{- $env = append $env (dict "name" (printf "TOLLGATE_ENGINE_%d" $number) "value" $url) }}
      {{- end }}
      {{- end }}
      {{- with $env }}
      env: {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- include "tollgate.probes" $ | nindent 6 }}
      lifecycle:
        preStop:
          exec: {command: [sleep, {{ $.Values.streams.preStopSeconds | quote }}]}
      resources: {{- toYaml $service.resources | nindent 8 }}
      volumeMounts:
        {{- include "tollgate.mounts" . | nindent 8 }}
        {{- with $service.extraVolumeMounts }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
  volumes:
    {{- include "tollgate.volumes" . | nindent 4 }}
    {{- with $service.extraVolumes }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
{{- end -}}
