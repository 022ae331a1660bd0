#include "services/inference_router/run/router_metrics.h"

#include <array>

#include "common/observability/latency_bounds.h"

namespace tollgate::inference_router {
namespace {

// Indexed by ExtendAnswer.
constexpr std::array kExtendAnswers = {"granted",   "no_answer", "held",
                                       "no_credit", "cap",       "closed"};

prometheus::Counter& Extensions(const char* answer) {
  return metrics::Counter("tollgate_router_extensions_total",
                          "Extensions of holds, by the ledger's answer.", {{"answer", answer}});
}

prometheus::Counter& Cuts(std::string_view reason) {
  return metrics::Counter(
      "tollgate_router_cut_without_answer_total",
      "Answers ended early because other requests held the credit, or the ledger did not answer.",
      {{"reason", std::string(reason)}});
}

prometheus::Counter& Hedges(std::string_view result) {
  return metrics::Counter(
      "tollgate_router_hedges_total",
      "Requests whose first engine had sent nothing for hedge_after_ms, by result: won (the second "
      "engine answered first), lost, failed (neither answered, or the caller left), no_engine (no "
      "other engine had a place), refused (the pool's retry budget is used up).",
      {{"result", std::string(result)}});
}

prometheus::Counter& AnswerLimits(std::string_view limit) {
  return metrics::Counter("tollgate_router_answer_limits_total",
                          "Engine answers ended because they exceeded a limit.",
                          {{"limit", std::string(limit)}});
}

prometheus::Counter& LeaseAdmissions(const char* result) {
  return metrics::Counter(
      "tollgate_router_lease_admissions_total",
      "Requests that gateways sent without a hold, by result: admitted, no_lease (no lease of this "
      "router covered it, so the gateway authorizes it).",
      {{"result", result}});
}

prometheus::Counter& LeasesRecalled() {
  return metrics::Counter(
      "tollgate_router_leases_recalled_total",
      "Leases that billing recalled: the credit is low, the workspace is frozen, or "
      "its cap was lowered.");
}

prometheus::Gauge& Leases() {
  return metrics::Gauge("tollgate_router_leases",
                        "Credit leases from which requests can be admitted.");
}

prometheus::Counter& Queued(const char* outcome) {
  return metrics::Counter("tollgate_router_queued_requests_total",
                          "Requests that found all engines of their pool full, by outcome: granted "
                          "(got a place), timed_out, full (the queue had no room), left (the "
                          "caller disconnected, or the process stopped).",
                          {{"outcome", outcome}});
}

}  // namespace

RouterMetrics::RouterMetrics(int64_t answer_us)
    : time_to_first_token(metrics::Histogram("tollgate_router_time_to_first_token_seconds",
                                             "Time from a request's arrival at the router to its "
                                             "first delta, for answers that the engine streams.",
                                             metrics::FirstTokenBounds())),
      whole_answers(metrics::Counter("tollgate_router_whole_answers_total",
                                     "Answers requested from engines without streaming.")),
      running(metrics::Gauge("tollgate_router_running_requests", "Requests running now.")),
      prompt_tokens(metrics::Counter("tollgate_router_tokens_total", "Tokens settled.",
                                     {{"kind", "prompt"}})),
      completion_tokens(metrics::Counter("tollgate_router_tokens_total", "Tokens settled.",
                                         {{"kind", "completion"}})),
      retries(metrics::Counter("tollgate_router_retries_total",
                               "Requests retried on a second engine.")),
      retries_refused(metrics::Counter("tollgate_router_retries_refused_total",
                                       "Failed requests not retried on a second engine because too "
                                       "many of the pool's requests were retried recently.")),
      queue_granted(Queued("granted")),
      queue_timed_out(Queued("timed_out")),
      queue_full(Queued("full")),
      queue_left(Queued("left")),
      queue_waiting(metrics::Gauge("tollgate_router_queue_waiting",
                                   "Requests that are waiting for a place at an engine.")),
      queue_seconds(
          metrics::Histogram("tollgate_router_queue_seconds",
                             "Time that requests waited before they got a place at an engine.",
                             metrics::FirstTokenBounds())),
      usage_estimated(metrics::Counter("tollgate_router_usage_estimated_total",
                                       "Settlements with at least one count of the router's own.")),
      usage_mismatches(metrics::Counter("tollgate_router_usage_mismatches_total",
                                        "Engine reports that were rejected as implausible, or are "
                                        "believed but unlikely for the size of the text.")),
      cut_by_credit(metrics::Counter("tollgate_router_cut_by_credit_total",
                                     "Answers ended early because the credit was used up.")),
      holds_lost(metrics::Counter("tollgate_router_holds_lost_total",
                                  "Running requests with a hold that the ledger has closed: "
                                  "expired, or given up by the gateway.")),
      settled_through_outbox(
          metrics::Counter("tollgate_router_outbox_settlements_total",
                           "Settlements written to the outbox before the ledger answered.")),
      not_durable(metrics::Counter(
          "tollgate_router_not_durable_total",
          "Answers ended without a durable record: disk full, ledger unreachable.")),
      implausible_counts(metrics::Counter(
          "tollgate_router_implausible_prompt_counts_total",
          "Token counts from engines that are impossible for a prompt of that size.")),
      lease_admitted(LeaseAdmissions("admitted")),
      lease_refused(LeaseAdmissions("no_lease")),
      leases_recalled(LeasesRecalled()),
      leases(Leases()),
      outbox_depth(metrics::Gauge("tollgate_router_outbox_depth",
                                  "Settlements not yet acknowledged by the ledger.")),
      outbox_waiting(metrics::Gauge(
          "tollgate_router_outbox_waiting_seconds",
          "Seconds since the outbox was last empty; 0: the ledger has all settlements.")),
      engines_available(
          metrics::Gauge("tollgate_router_engines_available", "Engines not known to be down.")),
      engines_known(metrics::Gauge("tollgate_router_engines", "Engines in the catalog.")),
      engines(answer_us) {
  // Creates every series at the start, so that alerts see it grow from zero.
  for (const char* result : {"won", "lost", "failed", "no_engine", "refused"}) {
    (void)Hedges(result);
  }
  for (size_t reason = 0; reason < kChoiceReasons; ++reason) {
    choices_[reason] =
        &metrics::Counter("tollgate_router_choices_total",
                          "Choices of an engine, by reason: session (it served the caller's "
                          "session last), prefix (it was given most of the prompt before), load "
                          "(it has the least work), only (no other engine was possible).",
                          {{"reason", std::string(NameOf(static_cast<ChoiceReason>(reason)))}});
  }
  for (const char* answer : kExtendAnswers) Extensions(answer);
  for (const char* reason : {"held", "no_answer"}) Cuts(reason);
  for (const char* limit : {"answer_bytes", "tool_calls", "tool_arguments", "silent_events",
                            "first_output", "silence", "answer_time", "max_tokens"}) {
    AnswerLimits(limit);
  }
}

void RouterMetrics::CountChoice(ChoiceReason reason) {
  choices_[static_cast<size_t>(reason)]->Increment();
}

void RouterMetrics::CountExtension(ExtendAnswer answer) {
  Extensions(kExtendAnswers[static_cast<size_t>(answer)]).Increment();
}

void RouterMetrics::CountCut(std::string_view reason) { Cuts(reason).Increment(); }

void RouterMetrics::CountHedge(std::string_view result) { Hedges(result).Increment(); }

void RouterMetrics::CountAnswerLimit(std::string_view limit) { AnswerLimits(limit).Increment(); }

}  // namespace tollgate::inference_router
