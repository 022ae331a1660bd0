#include "common/audit/refusal_writer.h"

#include <chrono>

#include "common/observability/log.h"

namespace tollgate::audit {
namespace {

constexpr auto kPeriod = std::chrono::seconds(1);

Record RecordOf(const RefusedCalls::Summary& summary) {
  Record record;
  record.at_us = summary.at_us;
  record.action = "call.refuse";
  if (summary.first.method.empty()) {
    record.actor = "policy:refused_calls";
    record.detail = std::to_string(summary.count) + " calls of other callers were refused";
    return record;
  }
  record.actor = summary.first.actor;
  record.address = summary.first.address;
  record.workspace_id = summary.first.workspace;
  record.subject = summary.first.method;
  record.detail = summary.first.reason;
  if (summary.count > 1) {
    record.detail += "; " + std::to_string(summary.count) + " calls within a minute";
  }
  return record;
}

}  // namespace

void RefusalWriter::Start() {
  calls_.AddWriter();
  thread_.Start("audit-refusals", kPeriod, [this] { Step(); });
}

void RefusalWriter::Stop() {
  if (!thread_.running()) return;
  thread_.Stop();
  calls_.RemoveWriter();
  Collect(true);
  Write();
}

void RefusalWriter::Step() {
  // While a batch cannot be written, further refusals stay in calls_, which counts them.
  if (waiting_.empty()) Collect(false);
  Write();
}

void RefusalWriter::Collect(bool all) {
  for (const auto& summary : calls_.Take(clock_.MonotonicUs(), all)) {
    waiting_.push_back(RecordOf(summary));
  }
}

void RefusalWriter::Write() {
  if (waiting_.empty()) return;
  const auto done = database_.Transact(sql::TxMode::kWrite, [this](sql::Connection& connection) {
    return Append(connection, tables_, waiting_);
  });
  if (done) {
    waiting_.clear();
    failing_ = false;
  } else if (!failing_) {
    failing_ = true;
    log::Warn("cannot write refused calls to the audit log; will retry",
              {{"error", done.error().message}});
  }
}

}  // namespace tollgate::audit
