"""Router and engines."""
from panel import graph, quantile, rate, stat, times

FAILED = rate("tollgate_router_engine_requests_total", matchers='outcome!~"ok|cut_by_credit|client_gone"')

ROUTER = (
    ("Now", (
        stat("Running", "short", "Requests on engines.", "sum(tollgate_router_running_requests)"),
        stat("Engines", "short", "That may be used, of the router that knows the fewest.", "min(tollgate_router_engines_available)"),
        stat("Failed runs", "percentunit", "Share of runs on engines.", f"({FAILED} or vector(0)) / {rate('tollgate_router_engine_requests_total')}", bad_above=0.05),
        stat("Output", "short", "Completion tokens per second.", rate("tollgate_router_tokens_total", matchers='kind="completion"')),
        stat("First token", "s", "95th percentile at the router.", quantile(0.95, "tollgate_router_time_to_first_token_seconds")),
        stat("Per token", "s", "Median time per token after the first.", quantile(0.5, "gen_ai_server_time_per_output_token_seconds")),
    )),
    ("Answers by model", (
        times("First token", "Of answers that the engine streams.", "gen_ai_server_time_to_first_token_seconds", "gen_ai_request_model"),
        times("Per token", "After the first.", "gen_ai_server_time_per_output_token_seconds", "gen_ai_request_model"),
        times("Duration", "To the end of the answer.", "gen_ai_server_request_duration_seconds", "gen_ai_request_model"),
        graph("Tokens", "short", "Per second.", (rate("gen_ai_client_token_usage_sum", "gen_ai_request_model, gen_ai_token_type"), "{{gen_ai_request_model}} {{gen_ai_token_type}}"), stacked=True),
        graph("Answers", "reqps", "By operation and engine's kind.", (rate("gen_ai_server_request_duration_seconds_count", "gen_ai_operation_name, gen_ai_provider_name"), "{{gen_ai_operation_name}} {{gen_ai_provider_name}}")),
        graph("Errors", "reqps", "By model and error.", (rate("gen_ai_server_request_duration_seconds_count", "gen_ai_request_model, error_type", 'error_type!=""'), "{{gen_ai_request_model}} {{error_type}}")),
    )),
    ("Engines", (
        graph("Runs", "reqps", "By engine and outcome.", (rate("tollgate_router_engine_requests_total", "engine, outcome"), "{{engine}} {{outcome}}")),
        graph("Available", "short", "Engines that routers know, and those that they may use.", ("max(tollgate_router_engines)", "known"), ("min(tollgate_router_engines_available)", "available")),
        graph("Load by engine", "short", "Running requests, of all routers.", ("sum by (engine) (tollgate_router_engine_running_requests)", "{{engine}}"),
              ("sum by (engine) (tollgate_router_engine_max_requests) > 0", "{{engine}} at most")),
        graph("Choices", "reqps", "Engines chosen, by reason: session, it had the session last; prefix, given most of the prompt before; load, least to do; only, no other could be chosen.", (rate("tollgate_router_choices_total", "reason"), "{{reason}}"), stacked=True),
        graph("Work by engine", "short", "Tokens that engines still have to do, of all routers: prompts not read yet, and four times the output that is expected.", ("sum by (engine) (tollgate_router_engine_outstanding_tokens)", "{{engine}}")),
        graph("Weights of engines", "short", "What they count for in the choice: the catalog's weight, less while an engine starts slowly.", ("min by (engine) (tollgate_router_engine_weight)", "{{engine}}")),
        graph("Load that engines report", "short", "By their own metrics, of all their callers.", ("max by (engine) (tollgate_router_engine_reported_running >= 0)", "{{engine}} runs"),
              ("max by (engine) (tollgate_router_engine_queue >= 0)", "{{engine}} waiting")),
        graph("Caches of engines", "percentunit", "Share of the KV cache in use, by their own metrics.", ("max by (engine) (tollgate_router_engine_cache_use_ratio >= 0)", "{{engine}}")),
        graph("Waiting for engines", "short", "Requests that found all engines of their pool full.", ("sum by (instance) (tollgate_router_queue_waiting)", "{{instance}}")),
        graph("End of the wait", "reqps", "By outcome: a place was free, or none in time, or the queue was full, or the caller left.", (rate("tollgate_router_queued_requests_total", "outcome"), "{{outcome}}")),
        graph("Up by engine", "short", "Routers that send it requests.", ("sum by (engine) (tollgate_router_engine_available >= 0)", "{{engine}}")),
        graph("Output by engine", "short", "Tokens per second of answers that ended.", (rate("tollgate_router_engine_output_tokens_total", "engine"), "{{engine}}"), stacked=True),
        graph("Retries and whole answers", "reqps", "Requests tried on a second engine, and those that were not since the pool had too many; answers that were not streamed by the engine.",
              (rate("tollgate_router_retries_total"), "retries"), (rate("tollgate_router_retries_refused_total"), "retries not made"), (rate("tollgate_router_whole_answers_total"), "whole")),
        graph("Asked of a second engine", "reqps", "Requests whose first engine was silent for too long, by how that ended: the second engine won or lost, both failed, no other had a place, or the pool's budget was used up.",
              (rate("tollgate_router_hedges_total", "result"), "{{result}}")),
        graph("Bounds", "ops", "Answers that were ended at a bound.", (rate("tollgate_router_answer_limits_total", "limit"), "{{limit}}")),
        times("First token at the router", "All models.", "tollgate_router_time_to_first_token_seconds"),
        graph("Tokens settled", "short", "Per second.", (rate("tollgate_router_tokens_total", "kind"), "{{kind}}"), stacked=True),
    )),
    ("Links", (
        graph("Running by router", "short", "Requests.", ("sum by (instance) (tollgate_router_running_requests)", "{{instance}}")),
        graph("Waiting at gateways", "bytes", "Requests that wait to be sent to a router.", ("sum by (router) (tollgate_gateway_link_queued_bytes)", "{{router}}")),
        graph("Waiting at routers", "bytes", "Events that wait to be sent; bodies that are not complete.", ("sum by (instance) (tollgate_router_link_queued_bytes)", "events {{instance}}"),
              ("sum by (instance) (tollgate_router_incoming_body_bytes)", "bodies {{instance}}")),
        graph("Not sent", "ops", "Requests that no router has had.", (rate("tollgate_gateway_link_not_sent_total", "reason"), "{{reason}}")),
        graph("Refused by routers", "ops", "Before they ran.", (rate("tollgate_router_refused_total", "error"), "{{error}}")),
        graph("Catalog", "short", "Version and models.", ("max(tollgate_catalog_version)", "version"), ("max(tollgate_catalog_models)", "models")),
        graph("Catalog file", "ops", "Reads of a changed file.", (rate("tollgate_catalog_reloads_total", "result"), "{{result}}")),
    )),
)
