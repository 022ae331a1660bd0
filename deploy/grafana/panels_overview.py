"""Overview, and limits and keys."""
from panel import graph, quantile, rate, stat, times

ERRORS = "(" + rate("tollgate_http_requests_total", matchers='status=~"5.."') + " or vector(0))"
ALL = rate("tollgate_http_requests_total")

OVERVIEW = (
    ("Now", (
        stat("Requests", "reqps", "Answered requests per second.", ALL),
        stat("Server errors", "percentunit", "Share of requests that were answered with 5xx.", f"{ERRORS} / {ALL}", bad_above=0.01),
        stat("Time to first token", "s", "95th percentile, from a request's arrival at the gateway.",
             quantile(0.95, "tollgate_gateway_first_token_seconds")),
        stat("Running", "short", "Requests that are handled now.", "sum(tollgate_http_requests_in_flight)"),
        stat("Engines down", "short", "Engines that no router may use.",
             "max(tollgate_router_engines) - max(tollgate_router_engines_available)", bad_above=1),
        stat("Charged", "currencyUSD", "Per hour, at the rate of now.",
             rate("tollgate_billing_charged_nano_usd_total") + " * 3600 / 1e9"),
    )),
    ("Requests by endpoint", (
        graph("Traffic", "reqps", "Answered requests.", (rate("tollgate_http_requests_total", "endpoint"), "{{endpoint}}"), stacked=True),
        graph("Answers by status", "reqps", "All endpoints.", (rate("tollgate_http_requests_total", "status"), "{{status}}"), stacked=True),
        graph("Error codes", "reqps", "Requests that did not get what they asked for, by endpoint and code.",
              (rate("tollgate_gateway_requests_total", "endpoint, code", 'code!=""'), "{{endpoint}} {{code}}")),
        times("Duration", "To the last byte of the answer.", "tollgate_http_request_duration_seconds", "endpoint"),
        times("First byte", "To the first byte of the answer.", "tollgate_http_first_byte_seconds", "endpoint"),
        times("First token", "To the first token of the answer, all endpoints.", "tollgate_gateway_first_token_seconds"),
    )),
    ("Volume", (
        graph("Tokens", "short", "Tokens per second of finished requests.", (rate("tollgate_gateway_tokens_total", "kind"), "{{kind}}"), stacked=True),
        graph("Callers that left", "reqps", "Clients that disconnected before the end.", (rate("tollgate_gateway_client_gone_total"), "left")),
        graph("Other models and routers", "reqps", "Requests that went on to another model or router.",
              (rate("tollgate_gateway_model_fallbacks_total", "stage"), "model: {{stage}}"),
              (rate("tollgate_gateway_moves_total", "result"), "router: {{result}}")),
    )),
)

LIMITS = (
    ("Limits", (
        graph("Denials", "reqps", "Refused requests by reason (docs/operations/why-refused.md).", (rate("tollgate_gateway_denials_total", "reason"), "{{reason}}")),
        graph("Admissions", "reqps", "Asked of the limiters, by result.", (rate("tollgate_ratelimit_acquires_total", "result"), "{{result}}")),
        graph("Shadow refusals", "reqps", "What limits in shadow mode would refuse.", (rate("tollgate_ratelimit_shadow_refusals_total", "limit"), "{{limit}}")),
        graph("Slots", "short", "Running requests that hold one, in memory.", ("sum(tollgate_ratelimit_leases)", "slots"),
              ("sum(tollgate_ratelimit_subjects)", "subjects")),
        graph("Releases", "reqps", "Ends of slots.", (rate("tollgate_ratelimit_releases_total", "kind"), "{{kind}}"),
              (rate("tollgate_ratelimit_leases_expired_total"), "expired"), (rate("tollgate_ratelimit_leases_restored_total"), "restored")),
        graph("Without the limiter", "reqps", "Requests that were checked against a local share.",
              (rate("tollgate_gateway_limiter_fallback_total"), "gateways"), (rate("tollgate_ratelimit_local_decisions_total"), "no Redis")),
        graph("Limiters", "short", "Redis is up (1); processes that share the limits; separate states that answer.",
              ("min(tollgate_ratelimit_redis_up)", "Redis"), ("max(tollgate_ratelimit_replicas)", "processes"),
              ("max(tollgate_gateway_limiter_stores)", "states")),
        graph("Slots held back", "s", "For how long none are given, since Redis may have lost those of running requests.",
              ("max(tollgate_ratelimit_redis_unsettled_seconds)", "held back")),
    )),
    ("Keys", (
        graph("Checks of keys", "reqps", "By the result of the gateway's cache.", (rate("tollgate_gateway_key_cache_total", "result"), "{{result}}")),
        times("Change until it acts", "From a change of a key in auth until a gateway applies it.", "tollgate_gateway_key_change_seconds"),
        graph("Version of keys", "short", "Gateways follow auth.", ("max(tollgate_auth_key_version)", "auth"), ("min(tollgate_gateway_key_version)", "slowest gateway")),
        graph("Look-ups", "reqps", "Keys that gateways ask auth for.", (rate("tollgate_auth_verify_total", "result"), "{{result}}")),
        times("Look-up", "Time of a look-up in auth.", "tollgate_auth_verify_seconds"),
        graph("Filter of live keys", "bytes", "Its size; 0: there is none.", ("min(tollgate_gateway_key_filter_bytes)", "gateway"), ("min(tollgate_auth_key_filter_bytes)", "auth")),
        graph("Made-up keys", "reqps", "Reads of auth's version before keys are refused; uses that auth did not take.",
              (rate("tollgate_gateway_key_version_reads_total"), "gateways"), (rate("tollgate_auth_version_reads_total"), "auth"),
              (rate("tollgate_gateway_key_uses_dropped_total"), "uses dropped")),
    )),
    ("People and audit", (
        graph("Changes", "ops", "Calls that change something.", (rate("tollgate_auth_changes_total", "kind, result"), "{{kind}} {{result}}")),
        graph("Audit log", "s", "Since the log last had all entries; above 0.5 of the second line: broken.",
              ("max by (source) (tollgate_auth_audit_copy_lag_seconds)", "lag {{source}}"), ("max by (source) (tollgate_auth_audit_copy_broken)", "broken {{source}}")),
        graph("Copies and checkpoints", "ops", "Entries that were copied, checkpoints by result.",
              (rate("tollgate_auth_audit_copied_total", "source"), "copied {{source}}"), (rate("tollgate_auth_audit_checkpoints_total", "result"), "checkpoint {{result}}")),
        graph("Mails", "ops", "To people.", (rate("tollgate_auth_mails_total", "result"), "{{result}}")),
        graph("Oldest mail", "s", "That is not sent.", ("max(tollgate_auth_mail_waiting_seconds)", "waiting")),
        graph("Sign-ins with the token", "ops", "At the admin API.", (rate("tollgate_dashboard_logins_total", "result"), "{{result}}")),
        graph("Content policy", "ops", "What browsers refused to load.", (rate("tollgate_dashboard_csp_reports_total"), "reports")),
        graph("Retired peppers", "short", "Keys that still need one.", ("max(tollgate_auth_keys_of_retired_peppers)", "keys")),
    )),
)
