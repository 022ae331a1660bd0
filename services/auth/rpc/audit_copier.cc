#include "services/auth/rpc/audit_copier.h"

#include <chrono>

#include "common/observability/log.h"
#include "common/observability/metrics.h"

namespace tollgate::auth {
namespace {

constexpr auto kPeriod = std::chrono::seconds(1);

}  // namespace

void AuditCopier::Start() {
  if (sources_.empty()) return;
  thread_.Start("audit-copy", kPeriod, [this] { Step(); });
}

void AuditCopier::Step() {
  for (const AuditSource& source : sources_) {
    State& state = states_[source.name];
    const int64_t now_us = store_.clock().MonotonicUs();
    if (state.complete_us == 0) state.complete_us = now_us;
    Copy(source, state);
    metrics::Gauge("tollgate_auth_audit_copy_lag_seconds",
                   "Seconds since the audit log last had all entries of this service.",
                   {{"source", source.name}})
        .Set(static_cast<double>(store_.clock().MonotonicUs() - state.complete_us) / 1e6);
  }
}

void AuditCopier::Copy(const AuditSource& source, State& state) {
  while (!thread_.stopping()) {
    const auto step = CopyAudit(store_.database(), source);
    if (!step) return Report(source, state, step.error().ToString(), false);
    metrics::Counter("tollgate_auth_audit_copied_total",
                     "Audit entries of other services that this replica has copied.",
                     {{"source", source.name}})
        .Increment(static_cast<double>(step->copied));
    if (!step->problem.empty()) return Report(source, state, step->problem, true);
    if (step->complete) break;
  }
  state.complete_us = store_.clock().MonotonicUs();
  Report(source, state, "", false);
}

void AuditCopier::Report(const AuditSource& source, State& state, const std::string& problem,
                         bool broken) {
  metrics::Gauge("tollgate_auth_audit_copy_broken",
                 "1 while the log of this service does not continue its copy.",
                 {{"source", source.name}})
      .Set(broken ? 1 : 0);
  if (problem == state.problem) return;
  state.problem = problem;
  if (problem.empty()) {
    log::Info("audit entries are copied again", {{"source", source.name}});
  } else if (broken) {
    log::Error("audit entries of a service are not copied: its log was changed",
               {{"source", source.name}, {"problem", problem}});
  } else {
    log::Warn("audit entries could not be copied; will retry",
              {{"source", source.name}, {"error", problem}});
  }
}

}  // namespace tollgate::auth
