"""Edge, and processes."""
from panel import graph, rate, stat

EDGE = (
    ("Budgets", (
        stat("Connections", "percentunit", "Of the fullest gateway.", "max(tollgate_http_connections / tollgate_http_connections_limit)", bad_above=0.8),
        stat("Memory", "percentunit", "Of the budget for bodies, of the fullest gateway.", "max(tollgate_http_memory_bytes / tollgate_http_memory_limit_bytes)", bad_above=0.7),
        stat("Certificate", "s", "Until the first one expires.", "min(tollgate_tls_certificate_expiry_seconds) - time()"),
        graph("Connections", "short", "Open, idle, and the most there may be.", ("sum by (instance) (tollgate_http_connections)", "open {{instance}}"),
              ("sum by (instance) (tollgate_http_connections_idle)", "idle {{instance}}"), ("sum by (instance) (tollgate_http_connections_limit)", "limit {{instance}}")),
        graph("Memory", "bytes", "Bodies of requests and unsent answers.", ("sum by (instance) (tollgate_http_memory_bytes)", "used {{instance}}"),
              ("sum by (instance) (tollgate_http_memory_limit_bytes)", "budget {{instance}}")),
        graph("Shed", "ops", "Refused or closed since memory is short.", (rate("tollgate_http_shed_total", "step"), "{{step}}")),
    )),
    ("Refusals", (
        graph("Framing", "ops", "Requests that two parsers understood differently.", (rate("tollgate_http_parser_disagreements_total"), "refused")),
        graph("Connections refused", "ops", "As soon as they came.", (rate("tollgate_http_connections_refused_total", "reason"), "{{reason}}")),
        graph("Evicted", "ops", "Idle connections that were closed for new ones.", (rate("tollgate_http_connections_evicted_total"), "evicted")),
        graph("Slow clients", "ops", "Given up, by the part of the request.", (rate("tollgate_http_slow_clients_total", "part"), "{{part}}")),
        graph("Disconnects", "ops", "Clients that left before the end of the answer.", (rate("tollgate_http_client_disconnects_total"), "left")),
        graph("Unmatched", "reqps", "Requests for no endpoint.", (rate("tollgate_http_requests_total", "status", 'endpoint="unmatched"'), "{{status}}")),
    )),
    ("Bodies", (
        graph("Large bodies", "ops", "Decoded outside of the event loops, or refused.", (rate("tollgate_gateway_large_bodies_total", "result"), "{{result}}")),
        graph("Coded bodies", "ops", "With a Content-Encoding.", (rate("tollgate_gateway_coded_bodies_total", "coding, result"), "{{coding}} {{result}}")),
        graph("In flight", "short", "Requests.", ("sum by (instance) (tollgate_http_requests_in_flight)", "{{instance}}")),
    )),
)

PROCESSES = (
    ("Processes", (
        graph("Up", "short", "1: the process answers the scrape.", ("min by (instance) (up)", "{{instance}}")),
        graph("CPU", "percentunit", "Of one processor.", ("sum by (instance) (rate(process_cpu_seconds_total[$__rate_interval]))", "{{instance}}")),
        graph("Memory", "bytes", "Resident.", ("sum by (instance) (process_resident_memory_bytes)", "{{instance}}")),
        graph("Files", "percentunit", "Open file descriptors, of the most there may be.", ("max by (instance) (process_open_fds / process_max_fds)", "{{instance}}")),
        graph("Age", "s", "Since the start.", ("time() - max by (instance) (process_start_time_seconds)", "{{instance}}")),
        graph("Versions", "short", "Processes of each version.", ("count by (process, version) (tollgate_build_info)", "{{process}} {{version}}")),
    )),
    ("Between processes", (
        graph("Replicas not used", "short", "Event loops that do not use a replica.", ("sum by (service, address) (tollgate_rpc_replica_ejected)", "{{service}} {{address}}")),
        graph("Ejections", "ops", "By service and reason.", (rate("tollgate_rpc_replica_ejections_total", "service, reason"), "{{service}} {{reason}}")),
        graph("Retries", "ops", "Calls that went to another replica.", (rate("tollgate_rpc_retries_total", "service, outcome"), "{{service}} {{outcome}}")),
        graph("Refused calls", "ops", "By the caller in the certificate.", (rate("tollgate_rpc_refused_calls_total", "caller"), "{{caller}}")),
        graph("Certificates", "s", "Until those for calls between processes expire.", ("min by (instance) (tollgate_rpc_certificate_expiry_seconds) - time()", "{{instance}}")),
    )),
    ("Machines", (
        graph("Disk", "percentunit", "Free where a process keeps its files.", ("min by (instance, folder) (tollgate_disk_free_bytes / tollgate_disk_size_bytes)", "{{instance}} {{folder}}")),
        graph("Spans", "ops", "Of traced requests, by what became of them; calls of the collector that failed.", (rate("tollgate_tracing_spans_total", "result"), "{{result}}"),
              (rate("tollgate_tracing_failed_calls_total"), "failed calls")),
        graph("Log lines dropped", "ops", "The reader of standard error is too slow.", (rate("tollgate_log_lines_dropped_total", "instance"), "{{instance}}")),
    )),
)
