{{/* The configuration of the processes, as deploy/config/cluster has it for containers; the paths are those of the mounts
     in _pod.tpl. (list $ NAME): the configuration of a service, with what its values add. */}}
{{- define "tollgate.config" -}}
{{- $ := index . 0 -}}
{{- $name := index . 1 -}}
{{- $service := include "tollgate.service" . | fromYaml -}}
{{- $config := include (printf "tollgate.config.%s" $name) (list $ $service) | fromYaml -}}
{{- $host := dict "host" (include "tollgate.config.host" (list $ $name $service) | fromYaml) -}}
{{- toYaml (mergeOverwrite $host $config (deepCopy $service.config)) -}}
{{- end -}}

{{- define "tollgate.config.host" -}}
{{- $ := index . 0 -}}
{{- $service := index . 2 -}}
{{- $table := include "tollgate.table" $ | fromYaml -}}
{{- $ports := index $table.listens (index . 1) -}}
# Probes and Prometheus only: the NetworkPolicy.
ops_listen: 0.0.0.0:{{ $table.ports.ops }}
ops_insecure_plaintext: true
threads: {{ $service.threads }}
{{- if has "grpc" $ports }}
grpc_listen: 0.0.0.0:{{ $table.ports.grpc }}
{{- end }}
{{- if has "admin" $ports }}
admin_grpc_listen: 0.0.0.0:{{ $table.ports.admin }}
{{- end }}
{{- if eq $.Values.tls.mode "off" }}
insecure_plaintext: true
{{- else }}
tls:
  certificate_file: /run/tls/tls.crt
  private_key_file: /run/tls/tls.key
  authority_file: /run/tls/ca.crt
  trust_domain: {{ $.Values.tls.trustDomain }}
{{- end }}
{{- with $.Values.tracing }}
{{- if .otlpEndpoint }}
tracing:
  otlp_endpoint: {{ .otlpEndpoint | quote }}
  sample_ratio: {{ .sampleRatio }}
  trust_client_sampling: {{ .trustClientSampling }}
{{- end }}
{{- end }}
{{- end -}}

{{/* (list $ DATABASE HOSTS): of an external server */}}
{{- define "tollgate.databaseUrl" -}}
{{- $ := index . 0 -}}
{{- $sql := $.Values.postgresql -}}
{{- $builtin := eq $sql.mode "builtin" -}}
{{- $host := ternary (printf "%s-postgresql" (include "tollgate.fullname" $)) (index . 2) $builtin -}}
{{- $port := ternary 5432 $sql.port $builtin -}}
postgresql://{{ $sql.user }}:${file:/run/secrets/postgres_password}@{{ splitList "," $host | join (printf ":%d," (int $port)) }}:{{ int $port }}/{{ index $sql.databases (index . 1) }}?sslmode={{ ternary "disable" $sql.sslMode $builtin }}
{{- if and $sql.caSecret (not $builtin) }}&sslrootcert=/run/postgresql-ca/ca.crt{{ end -}}
{{- end -}}

{{- define "tollgate.config.auth" -}}
{{- $ := index . 0 -}}
{{- $service := index . 1 -}}
auth:
  sql:
    url: {{ include "tollgate.databaseUrl" (list $ "auth" $.Values.postgresql.host) }}
  pepper: ${file:/run/secrets/pepper}
  {{- if $service.checkpoints }}
  audit_checkpoint_key_file: /run/secrets/audit_checkpoint_key
  audit_checkpoint_file: /var/lib/tollgate/audit.checkpoints
  {{- end }}
  people:
    seal_key_file: /run/secrets/seal_key
    public_url: {{ $.Values.dashboardUrl | quote }}
targets:
  billing_admin: {{ include "tollgate.target" (list $ "billing" "admin") }}
  ratelimit: {{ include "tollgate.target" (list $ "ratelimit" "grpc") }}
{{- end -}}

{{- define "tollgate.config.billing" -}}
{{- $ := index . 0 -}}
{{- $service := index . 1 -}}
billing:
  sql:
    url: {{ include "tollgate.databaseUrl" (list $ "billing" $.Values.postgresql.host) }}
  {{- if and $.Values.postgresql.reportsHost (ne $.Values.postgresql.mode "builtin") }}
  reports_sql:
    url: {{ include "tollgate.databaseUrl" (list $ "billing" $.Values.postgresql.reportsHost) }}
  {{- end }}
  {{- if $service.checkpoints }}
  checkpoint_key_file: /run/secrets/ledger_checkpoint_key
  checkpoint_file: /var/lib/tollgate/ledger.checkpoints
  {{- end }}
  alerts:
    seal_key_file: /run/secrets/webhook_seal_key
    dashboard_url: {{ $.Values.dashboardUrl | quote }}
  {{- if $service.webhooks }}
  payments:
    webhook_listen: 0.0.0.0:{{ (include "tollgate.table" $ | fromYaml).ports.webhooks }}
    webhook_insecure_plaintext: true
  {{- end }}
{{- end -}}

{{- define "tollgate.config.ratelimit" -}}
{{- $ := index . 0 -}}
{{- $redis := $.Values.redis -}}
ratelimit:
  {{- if eq $redis.mode "builtin" }}
  redis_url: redis://{{ include "tollgate.target" (list $ "redis" "redis") }}
  redis_password_file: /run/secrets/redis_password
  {{- else }}
  redis_url: {{ $redis.url | quote }}
  {{- with $redis.user }}
  redis_user: {{ . | quote }}
  {{- end }}
  {{- if $redis.password }}
  redis_password_file: /run/secrets/redis_password
  {{- end }}
  {{- if $redis.caSecret }}
  redis_authority_file: /run/redis-ca/ca.crt
  {{- end }}
  {{- end }}
{{- end -}}

{{- define "tollgate.config.catalog" -}}
catalog:
  # A separate folder: a file that is mounted alone is never updated. Replicas get a change at different times; readers
  # compare the digest.
  file: /run/catalog/catalog.yaml
{{- end -}}

{{/* Drains may last as long as the longest answer. */}}
{{- define "tollgate.config.inference-router" -}}
{{- $ := index . 0 -}}
host:
  drain_seconds: {{ int $.Values.streams.longestSeconds }}
targets:
  billing: {{ include "tollgate.target" (list $ "billing" "grpc") }}
  catalog: {{ include "tollgate.target" (list $ "catalog" "grpc") }}
router:
  data_dir: /var/lib/tollgate
  catalog_cache_file: /var/lib/tollgate/catalog
{{- end -}}

{{- define "tollgate.config.gateway" -}}
{{- $ := index . 0 -}}
{{- $service := index . 1 -}}
host:
  drain_seconds: {{ add (int $.Values.streams.longestSeconds) (int $.Values.streams.noticeSeconds) }}
targets:
  auth: {{ include "tollgate.target" (list $ "auth" "grpc") }}
  ratelimit: {{ include "tollgate.target" (list $ "ratelimit" "grpc") }}
  billing: {{ include "tollgate.target" (list $ "billing" "grpc") }}
  catalog: {{ include "tollgate.target" (list $ "catalog" "grpc") }}
  inference_routers: [{{ include "tollgate.target" (list $ "inference-router" "grpc") | quote }}]
gateway:
  listen: 0.0.0.0:{{ (include "tollgate.table" $ | fromYaml).ports.gateway }}
  {{- if $service.tlsSecret }}
  edge_tls:
    certificate_file: /run/edge-tls/tls.crt
    private_key_file: /run/edge-tls/tls.key
  {{- else }}
  # A proxy in front ends TLS: an Ingress, a Gateway or a load balancer.
  insecure_plaintext: true
  {{- end }}
  {{- include "tollgate.trustedProxies" $ | nindent 2 }}
  base_url: {{ $.Values.baseUrl | quote }}
  dashboard_url: {{ $.Values.dashboardUrl | quote }}
  drain_notice_seconds: {{ int $.Values.streams.noticeSeconds }}
  catalog_cache_file: /var/lib/tollgate/catalog
  idempotency_key_file: /run/secrets/idempotency_key
  reasoning_key_file: /run/secrets/reasoning_key
{{- end -}}

{{- define "tollgate.trustedProxies" -}}
trusted_proxies: {{ without .Values.trustedProxies "none" | toJson }}
{{- end -}}

{{- define "tollgate.config.dashboard" -}}
{{- $ := index . 0 -}}
{{- $service := index . 1 -}}
targets:
  ratelimit: {{ include "tollgate.target" (list $ "ratelimit" "grpc") }}
  auth_admin: {{ include "tollgate.target" (list $ "auth" "admin") }}
  billing_admin: {{ include "tollgate.target" (list $ "billing" "admin") }}
  catalog_admin: {{ include "tollgate.target" (list $ "catalog" "admin") }}
  router_admin: [{{ include "tollgate.target" (list $ "inference-router" "admin") | quote }}]
  gateways: {{ include "tollgate.target" (list $ "gateway" "grpc") }}
dashboard:
  listen: 0.0.0.0:{{ (include "tollgate.table" $ | fromYaml).ports.dashboard }}
  {{- if $service.tlsSecret }}
  edge_tls:
    certificate_file: /run/edge-tls/tls.crt
    private_key_file: /run/edge-tls/tls.key
  {{- else }}
  # A proxy in front ends TLS.
  insecure_plaintext: true
  {{- end }}
  {{- include "tollgate.trustedProxies" $ | nindent 2 }}
  public_url: {{ $.Values.dashboardUrl | quote }}
  login_token: ${file:/run/secrets/dashboard_token}
  base_url: {{ $.Values.baseUrl | quote }}
  {{- if not (index $.Values.services "gateway").tlsSecret }}
  # With TLS at the gateway its certificate is that of base_url.
  gateway_url: http://{{ include "tollgate.fullname" $ }}-api:{{ (include "tollgate.table" $ | fromYaml).ports.gateway }}
  {{- end }}
  # In the image.
  web_folder: /usr/share/tollgate/web
{{- end -}}

{{/* For the Job before an upgrade: the process alone, without callers and without calls. (list $ NAME) */}}
{{- define "tollgate.config.migrate" -}}
{{- $ := index . 0 -}}
{{- $name := index . 1 -}}
{{- $config := include "tollgate.config" . | fromYaml -}}
{{- $settings := omit (index $config $name) "audit_checkpoint_key_file" "audit_checkpoint_file" "checkpoint_key_file" "checkpoint_file" "retention_months" -}}
{{- $host := dict "ops_listen" (printf "127.0.0.1:%v" (include "tollgate.table" $ | fromYaml).ports.ops) "drain_seconds" 5 -}}
{{- toYaml (dict "host" $host $name $settings) -}}
{{- end -}}
