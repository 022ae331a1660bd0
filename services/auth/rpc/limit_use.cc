#include "services/auth/rpc/limit_use.h"

#include <algorithm>
#include <memory>
#include <set>
#include <utility>

#include "common/admin/requests.h"
#include "common/base/clock.h"
#include "common/keys/lineage.h"

namespace tollgate::auth {
namespace {

namespace av = admin::v1;
namespace rl = ratelimit::v1;

constexpr int64_t kMinuteMs = 60'000;
constexpr int64_t kHourMs = 60 * kMinuteMs;
constexpr int64_t kUsPerMs = 1000;

// One of the three kinds of limits, with its fields in the messages of both services.
struct KindOfLimit {
  av::LimitKind kind;
  const rl::LimitStatus& (rl::UseResult::*left)() const;
  int64_t (rl::MinuteUse::*used)() const;  // null: uses of this kind do not add up
  int64_t (rl::MinuteUse::*peak)() const;
  int64_t (rl::MinuteUse::*refused)() const;
};
constexpr KindOfLimit kKinds[] = {
    {av::LIMIT_KIND_REQUESTS_PER_MINUTE, &rl::UseResult::requests, &rl::MinuteUse::requests,
     &rl::MinuteUse::requests_peak, &rl::MinuteUse::refused_by_requests},
    {av::LIMIT_KIND_TOKENS_PER_MINUTE, &rl::UseResult::tokens, &rl::MinuteUse::tokens,
     &rl::MinuteUse::tokens_peak, &rl::MinuteUse::refused_by_tokens},
    {av::LIMIT_KIND_CONCURRENT_REQUESTS, &rl::UseResult::concurrency, nullptr,
     &rl::MinuteUse::concurrency_peak, &rl::MinuteUse::refused_by_concurrency},
};

// Writes the limiter's answer.
class UseWriter {
 public:
  UseWriter(const rl::GetUseResponse& answer, UseDetail detail)
      : answer_(answer), detail_(detail), now_us_(SystemClock::Get().WallUs()) {}

  void Write(const rl::UseResult& result, const std::string& model, av::LimitUsage& usage) const {
    for (const KindOfLimit& kind : kKinds) {
      const rl::LimitStatus& left = (result.*kind.left)();
      if (left.limit() == 0) continue;
      av::LimitUse& use = *usage.add_uses();
      use.set_model(model);
      use.set_kind(kind.kind);
      use.set_limit(left.limit());
      use.set_remaining(left.remaining());
      if (kind.kind != av::LIMIT_KIND_CONCURRENT_REQUESTS && left.reset_ms() > 0) {
        *use.mutable_reset_time() = admin::ToTimestamp(now_us_ + left.reset_ms() * kUsPerMs);
      }
      if (answer_.minutes_known()) WriteHour(result, kind, *use.mutable_hour());
    }
    if (answer_.minutes_known() && answer_.counted_ms() < kHourMs) {
      *usage.mutable_counted_since() =
          admin::ToTimestamp(now_us_ - answer_.counted_ms() * kUsPerMs);
    }
  }

 private:
  void WriteHour(const rl::UseResult& result, const KindOfLimit& kind, av::LimitHour& hour) const {
    for (const rl::MinuteUse& from : result.minutes()) {
      const int64_t used = kind.used == nullptr ? 0 : (from.*kind.used)();
      const int64_t peak = (from.*kind.peak)();
      const int64_t refused = (from.*kind.refused)();
      if (used == 0 && peak == 0 && refused == 0) continue;
      hour.set_used(hour.used() + used);
      hour.set_peak(std::max(hour.peak(), peak));
      hour.set_refused(hour.refused() + refused);
      if (detail_ != UseDetail::kMinutes) continue;
      av::LimitMinute& minute = *hour.add_minutes();
      *minute.mutable_start_time() = StartOf(from.minutes_ago());
      minute.set_minutes_ago(from.minutes_ago());
      minute.set_used(used);
      minute.set_peak(peak);
      minute.set_refused(refused);
    }
  }
  // Rounds to a second: answers of one limiter differ only by the time of the call.
  google::protobuf::Timestamp StartOf(int64_t minutes_ago) const {
    const int64_t us = now_us_ - (answer_.minute_ms() + minutes_ago * kMinuteMs) * kUsPerMs;
    return admin::ToTimestamp((us + 500'000) / 1'000'000 * 1'000'000);
  }

  const rl::GetUseResponse& answer_;
  const UseDetail detail_;
  const int64_t now_us_;
};

void MarkFirst(av::LimitUsage& usage) {
  av::LimitUse* first = nullptr;
  const auto part = [](const av::LimitUse& use) {
    return static_cast<double>(use.remaining()) / static_cast<double>(use.limit());
  };
  for (av::LimitUse& use : *usage.mutable_uses()) {
    if (use.remaining() < use.limit() && (first == nullptr || part(use) < part(*first))) {
      first = &use;
    }
  }
  if (first != nullptr) first->set_binds_first(true);
}

rl::UseItem ItemOf(const UseSubject& subject) {
  rl::UseItem item;
  item.set_workspace_id(subject.workspace);
  item.set_key_id(subject.key);
  item.set_model(subject.model);
  item.mutable_limits()->set_requests_per_minute(subject.limits.requests_per_minute);
  item.mutable_limits()->set_tokens_per_minute(subject.limits.tokens_per_minute);
  item.mutable_limits()->set_concurrent_requests(subject.limits.concurrent_requests);
  return item;
}

LimitValues ValuesOf(const v1::Limits& limits) {
  return {limits.requests_per_minute(), limits.tokens_per_minute(), limits.concurrent_requests()};
}

}  // namespace

void AskForUse(const Peers& peers, std::vector<UseSubject> subjects, UseDetail detail,
               const admin::Call& call) {
  if (subjects.empty()) return call.Finish({});
  if (!peers.limit_use) {
    return call.Finish(admin::Precondition(
        "LIMITER_UNKNOWN", "targets.ratelimit is not set in the configuration of auth"));
  }
  rl::GetUseRequest question;
  for (const UseSubject& subject : subjects) *question.add_items() = ItemOf(subject);
  peers.limit_use(std::move(question), [subjects = std::move(subjects), detail,
                                        call](const Result<rl::GetUseResponse>& answer) {
    if (!answer) return call.Refuse(answer.error());
    const UseWriter writer(*answer, detail);
    std::set<av::LimitUsage*> written;
    for (int i = 0; i < std::min<int>(answer->results_size(), static_cast<int>(subjects.size()));
         ++i) {
      const UseSubject& subject = subjects[static_cast<size_t>(i)];
      writer.Write(answer->results(i), subject.model, *subject.usage);
      written.insert(subject.usage);
    }
    for (av::LimitUsage* usage : written) MarkFirst(*usage);
    call.Finish({});
  });
}

std::vector<UseSubject> SubjectsOf(const std::string& workspace,
                                   const AuthStore::WorkspaceLimits& limits,
                                   av::LimitUsage& usage) {
  std::vector<UseSubject> subjects;
  const auto add = [&](const std::string& model, const Effective& effective) {
    if (IsNone(effective.limits) || (effective.of_plan && limits.plan_shadow)) return;
    subjects.push_back(
        {.workspace = workspace, .model = model, .limits = effective.limits, .usage = &usage});
  };
  add("", Choose(limits.limits, limits.of_plan.workspace));
  for (const auto& [model, effective] :
       Choose(limits.model_limits, limits.of_plan.workspace_models)) {
    add(model, effective);
  }
  return subjects;
}

std::vector<UseSubject> SubjectsOf(const v1::Key& key, av::LimitUsage& usage) {
  std::vector<UseSubject> subjects;
  const auto add = [&](const std::string& model, const v1::Limits& limits) {
    if (IsNone(ValuesOf(limits)) || limits.shadow()) return;
    subjects.push_back({.workspace = key.workspace_id(),
                        .key = LineageOf(key),
                        .model = model,
                        .limits = ValuesOf(limits),
                        .usage = &usage});
  };
  add("", key.key_limits());
  std::set<std::string> models;  // sorted, because the proto's map has no order
  for (const auto& [model, limits] : key.key_model_limits()) models.insert(model);
  for (const std::string& model : models) add(model, key.key_model_limits().at(model));
  return subjects;
}

}  // namespace tollgate::auth
