#include "services/inference_router/session/router_metrics.h"

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
      "Answers ended early because credit stayed held, or the ledger did not answer.",
      {{"reason", std::string(reason)}});
}

prometheus::Counter& Hedges(std::string_view result) {
  return metrics::Counter(
      "tollgate_router_hedges_total",
      "Requests whose first engine had shown nothing for hedge_after_ms, by result: won (the "
      "second "
      "engine answered first), lost, failed (neither answered, or the caller left), no_engine (no "
      "other had a place), refused (the pool's budget of retries is used up).",
      {{"result", std::string(result)}});
}

prometheus::Counter& AnswerLimits(std::string_view limit) {
  return metrics::Counter("tollgate_router_answer_limits_total",
                          "Answers of engines ended because they were above a bound.",
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
  return metrics::Counter("tollgate_router_leases_recalled_total",
                          "Leases that billing wanted back, as credit was low.");
}

prometheus::Gauge& Leases() {
  return metrics::Gauge(
      "tollgate_router_leases",
      "Leases on the credit of workspaces that requests may be admitted from now.");
}

prometheus::Counter& Queued(const char* outcome) {
  return metrics::Counter(
      "tollgate_router_queued_requests_total",
      "Requests that found all engines of their pool full, by outcome: granted (got a place), "
      "timed_out, full (the queue had no room), left (the caller went, or the process stopped).",
      {{"outcome", outcome}});
}

}  // namespace

RouterMetrics::RouterMetrics(int64_t answer_us)
    : time_to_first_token(
          metrics::Histogram("tollgate_router_time_to_first_token_seconds",
                             "From the request's arrival at the router to its first delta, of "
                             "answers that the engine streams.",
                             metrics::FirstTokenBounds())),
      whole_answers(metrics::Counter("tollgate_router_whole_answers_total",
                                     "Answers that engines were asked for without streaming.")),
      running(metrics::Gauge("tollgate_router_running_requests", "Requests running now.")),
      prompt_tokens(metrics::Counter("tollgate_router_tokens_total", "Tokens settled.",
                                     {{"kind", "prompt"}})),
      completion_tokens(metrics::Counter("tollgate_router_tokens_total", "Tokens settled.",
                                         {{"kind", "completion"}})),
      retries(metrics::Counter("tollgate_router_retries_total",
                               "Requests retried on a second engine.")),
      retries_refused(metrics::Counter("tollgate_router_retries_refused_total",
                                       "Failed requests not tried on a second engine, since too "
                                       "many of the pool's requests have "
                                       "been retried lately.")),
      queue_granted(Queued("granted")),
      queue_timed_out(Queued("timed_out")),
      queue_full(Queued("full")),
      queue_left(Queued("left")),
      queue_waiting(metrics::Gauge("tollgate_router_queue_waiting",
                                   "Requests that wait for a place at an engine now.")),
      queue_seconds(metrics::Histogram("tollgate_router_queue_seconds",
                                       "How long requests waited that got a place.",
                                       metrics::FirstTokenBounds())),
      usage_estimated(metrics::Counter("tollgate_router_usage_estimated_total",
                                       "Settlements with at least one count of the router's own.")),
      usage_mismatches(metrics::Counter("tollgate_router_usage_mismatches_total",
                                        "Engine reports that failed the plausibility check.")),
      cut_by_credit(metrics::Counter("tollgate_router_cut_by_credit_total",
                                     "Answers ended early because the credit was used up.")),
      holds_lost(metrics::Counter(
          "tollgate_router_holds_lost_total",
          "Running requests whose hold the ledger has closed: expired, or given up on.")),
      settled_through_outbox(
          metrics::Counter("tollgate_router_outbox_settlements_total",
                           "Settlements written to the outbox before the ledger answered.")),
      not_durable(metrics::Counter(
          "tollgate_router_not_durable_total",
          "Answers ended without a durable record: disk full, ledger unreachable.")),
      implausible_counts(
          metrics::Counter("tollgate_router_implausible_prompt_counts_total",
                           "Counts of engines' tokenizers that no prompt of that size can have.")),
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
                          "Choices of an engine, by reason: session (it had the caller's session "
                          "last), prefix (it was given most of the prompt before), load (it has "
                          "least to do), only (no other could be chosen).",
                          {{"reason", std::string(NameOf(static_cast<ChoiceReason>(reason)))}});
  }
  for (const char* answer : kExtendAnswers) Extensions(answer);
  for (const char* reason : {"held", "no_answer"}) Cuts(reason);
  for (const char* limit : {"answer_bytes", "tool_calls", "tool_arguments", "silent_events",
                            "first_output", "silence", "answer_time"}) {
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
