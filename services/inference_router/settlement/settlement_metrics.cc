#include "services/inference_router/settlement/settlement_metrics.h"

#include <string>

namespace tollgate::inference_router {
namespace {

prometheus::Counter& Quarantined(std::string_view reason) {
  return metrics::Counter("tollgate_router_settlements_quarantined_total",
                          "Parts of the outbox that were moved to its quarantine file.",
                          {{"reason", std::string(reason)}});
}

prometheus::Counter& Lost(std::string_view file) {
  return metrics::Counter(
      "tollgate_router_settlement_files_lost_total",
      "Settlement files found gone, empty, damaged or replaced at the start of the router.",
      {{"file", std::string(file)}});
}

// no_credit, id_reuse, …
std::string LabelOf(billing::v1::DenyReason reason) {
  std::string name = billing::v1::DenyReason_Name(reason);
  constexpr std::string_view kPrefix = "DENY_REASON_";
  if (name.starts_with(kPrefix)) name.erase(0, kPrefix.size());
  for (char& c : name) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return name.empty() ? "other" : name;
}

prometheus::Counter& Refused(billing::v1::DenyReason reason, std::string_view source) {
  return metrics::Counter("tollgate_router_settlements_refused_total",
                          "Settlements that the ledger refused: they are not charged.",
                          {{"reason", LabelOf(reason)}, {"source", std::string(source)}});
}

prometheus::Counter& JournalRequests(std::string_view result) {
  return metrics::Counter("tollgate_router_journal_requests_total",
                          "Requests of a previous process found in the journal.",
                          {{"result", std::string(result)}});
}

}  // namespace

SettlementMetrics& SettlementMetrics::Get() {
  static SettlementMetrics metrics;
  return metrics;
}

SettlementMetrics::SettlementMetrics()
    : lost_admissions_(
          metrics::Counter("tollgate_router_admissions_lost_total",
                           "Requests that were admitted from a lease and are not charged, because "
                           "the machine stopped before the ledger knew of them.")) {
  for (const char* reason : {"corrupt", "unparsable", "gave_up"}) Quarantined(reason);
  for (const char* file : {"outbox", "journal", "state"}) Lost(file);
  for (const char* source : {"live", "recovered"}) {
    for (auto reason : {billing::v1::DENY_REASON_ID_REUSE, billing::v1::DENY_REASON_CLOSED,
                        billing::v1::DENY_REASON_INVALID}) {
      Refused(reason, source);
    }
  }
  for (const char* result : {"recovered", "older_copy", "other_boot", "damaged"}) {
    JournalRequests(result);
  }
}

void SettlementMetrics::CountQuarantined(std::string_view reason) {
  Quarantined(reason).Increment();
}

void SettlementMetrics::CountLostFile(std::string_view file) { Lost(file).Increment(); }

void SettlementMetrics::CountRefused(billing::v1::DenyReason reason, std::string_view source) {
  Refused(reason, source).Increment();
}

void SettlementMetrics::CountLostAdmissions(int64_t requests) {
  lost_admissions_.Increment(static_cast<double>(requests));
}

void SettlementMetrics::CountJournal(std::string_view result, int64_t requests) {
  if (requests > 0) JournalRequests(result).Increment(static_cast<double>(requests));
}

}  // namespace tollgate::inference_router
