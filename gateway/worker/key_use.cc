#include "gateway/worker/key_use.h"

#include <cstring>
#include <utility>

#include "common/base/crypto.h"
#include "common/base/id.h"
#include "common/base/time_units.h"
#include "common/observability/log.h"

namespace tollgate::gateway {
namespace {

constexpr int64_t kQuarterUs = 15 * kMinuteUs;
constexpr size_t kMaxKeysInUse = 100'000;
constexpr size_t kMaxAddresses = 1'000;
constexpr size_t kBatch = 500;
// 800 KB: far below the 4 MiB limit of a gRPC message.
constexpr int kBatchAddresses = 100'000;

uint64_t DigestOf(std::string_view address) {
  uint64_t digest = 0;
  std::memcpy(&digest, Sha256(std::string(address)).data(), sizeof digest);
  return digest;
}

}  // namespace

KeyUseReporter::KeyUseReporter(Loop& loop, const Clock& clock, AuthClient& auth)
    : loop_(loop),
      clock_(clock),
      auth_(auth),
      reporter_(Id::New().ToHex()),
      dropped_(metrics::Counter("tollgate_gateway_key_uses_dropped_total",
                                "Reported key uses that auth refused.")) {}

void KeyUseReporter::Stop() {
  stopped_ = true;
  if (timer_ != 0) loop_.CancelTimer(timer_);
  timer_ = 0;
}

void KeyUseReporter::ArmTimer() {
  if (timer_ != 0 || stopped_) return;
  timer_ = loop_.RunAfter(kIntervalMs, [weak = weak_from_this()] {
    const auto self = weak.lock();
    if (!self) return;
    self->timer_ = 0;
    if (!self->stopped_) self->loop_.Spawn(ReportLater(self));
  });
}

KeyUseReporter::Use* KeyUseReporter::Find(const std::string& key_id) {
  ArmTimer();
  auto found = uses_.find(key_id);
  if (found == uses_.end()) {
    if (uses_.size() >= kMaxKeysInUse) return nullptr;
    found = uses_.emplace(key_id, Use()).first;
  }
  Use& use = found->second;
  const int64_t now_us = clock_.WallUs();
  const int64_t hour = now_us / kHourUs, minute = now_us / kMinuteUs;
  const int64_t quarter = now_us / kQuarterUs;
  // Keeps the final counts of a period that has ended.
  if (use.changed && minute != use.minute && ended_.size() < kMaxKeysInUse) {
    Report(key_id, use, ended_.emplace_back());
  }
  if (use.hour != hour) use.requests = 0;
  if (use.minute != minute) use.refusals_in_minute = 0;
  if (use.quarter != quarter) use.refusals.clear();
  use.hour = hour;
  use.minute = minute;
  use.quarter = quarter;
  use.changed = true;
  return &use;
}

void KeyUseReporter::Count(const std::string& key_id, std::string_view address) {
  Use* const use = Find(key_id);
  if (use == nullptr) return;
  use->last_used_us = clock_.WallUs();
  ++use->requests;
  if (wants_addresses_ && use->addresses.size() < kMaxAddresses) {
    use->addresses.insert(DigestOf(address));
  }
}

void KeyUseReporter::CountRefusal(const std::string& key_id, const Error& error) {
  Use* const use = Find(key_id);
  if (use == nullptr) return;
  ++use->refusals[{error.row().code, error.reason}];
  const int status = error.row().http_status;
  if (status >= 400 && status < 500 && status != 429) ++use->refusals_in_minute;
}

void KeyUseReporter::Report(const std::string& key_id, const Use& use, auth::v1::KeyUse& into) {
  into.set_key_id(key_id);
  into.set_last_used_us(use.last_used_us);
  into.set_hour(use.hour);
  into.set_requests_in_hour(use.requests);
  into.set_minute(use.minute);
  into.set_refusals_in_minute(use.refusals_in_minute);
  for (const auto& [why, count] : use.refusals) {
    auth::v1::RefusalCount& refusal = *into.add_refusals();
    refusal.set_quarter(use.quarter);
    refusal.set_code(std::string(why.first));
    refusal.set_reason(std::string(NameOf(why.second)));
    refusal.set_count(count);
  }
}

Task<void> KeyUseReporter::ReportLater(std::shared_ptr<KeyUseReporter> self) {
  co_await self->Report();
}

Task<void> KeyUseReporter::Report() {
  if (reporting_) co_return;
  reporting_ = true;
  const auto self = shared_from_this();
  std::vector<auth::v1::KeyUse> waiting = std::exchange(ended_, {});
  // Forgets the keys that were not used since the last report when their hour has ended.
  const int64_t hour = clock_.WallUs() / kHourUs;
  std::erase_if(uses_, [hour](const auto& entry) {
    return !entry.second.changed && entry.second.hour != hour;
  });
  for (auto& [key_id, use] : uses_) {
    if (!use.changed) continue;
    auth::v1::KeyUse& report = waiting.emplace_back();
    Report(key_id, use, report);
    for (const uint64_t address : use.addresses) report.add_addresses(address);
    use.addresses.clear();
    use.changed = false;
  }
  for (size_t at = 0; at < waiting.size() && !stopped_;) {
    auth::v1::ReportKeyUseRequest request;
    request.set_reporter(reporter_);
    size_t end = at;
    for (int addresses = 0; end < waiting.size() && end < at + kBatch; ++end) {
      addresses += waiting[end].addresses_size();
      if (end > at && addresses > kBatchAddresses) break;
      *request.add_uses() = waiting[end];
    }
    const auto answer = co_await auth_.ReportKeyUse(std::move(request));
    if (!answer && answer.error().id != ErrorId::kServiceUnavailable) {
      dropped_.Increment(static_cast<double>(end - at));
      log::Warn("auth refused a report of key uses; dropping the report",
                {{"uses", std::to_string(end - at)}, {"error", answer.error().ToString()}});
      at = end;
      continue;
    }
    if (!answer) {
      // Keeps the rest for the next report.
      for (size_t i = at; i < waiting.size() && ended_.size() < kMaxKeysInUse; ++i) {
        ended_.push_back(std::move(waiting[i]));
      }
      break;
    }
    wants_addresses_ = answer->wants_addresses();
    at = end;
  }
  reporting_ = false;
  if (!ended_.empty() || !uses_.empty()) ArmTimer();
}

}  // namespace tollgate::gateway
