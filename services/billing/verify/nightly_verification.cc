#include "services/billing/verify/nightly_verification.h"

#include <chrono>
#include <filesystem>

#include "common/base/clock.h"
#include "common/base/time_units.h"
#include "common/observability/log.h"
#include "services/billing/verify/verifications.h"
#include "services/billing/verify/verify_process.h"

namespace tollgate::billing {
namespace {

using sql::SqlResult;

// The night begins at 02:00 UTC.
constexpr int64_t kNightBeginsUs = 2 * kHourUs;
constexpr auto kReportEach = std::chrono::seconds(1);

int64_t NightOf(int64_t now_us) {
  return (now_us - kNightBeginsUs) / kDayUs * kDayUs + kNightBeginsUs;
}

std::vector<std::string> DefaultProgram() {
  std::error_code failed;
  const auto own = std::filesystem::read_symlink("/proc/self/exe", failed);
  const auto beside = own.parent_path() / "tollgate-billing";
  return {!failed && std::filesystem::exists(beside, failed) ? beside.string()
                                                             : "tollgate-billing"};
}

// One that was broken off begins again; one that an operator cancelled does not, this night.
bool IsDue(const std::optional<Verification>& newest, int64_t now_us) {
  if (!newest || newest->created_us < NightOf(now_us)) return true;
  return newest->state == VerificationState::kBrokenOff && newest->created_us < now_us - kHourUs;
}

}  // namespace

NightlyVerification::NightlyVerification(Options options, std::function<int64_t()> now_us,
                                         std::function<bool()> ready)
    : options_(std::move(options)),
      now_us_(std::move(now_us)),
      ready_(std::move(ready)),
      age_seconds_(metrics::Gauge(
          "tollgate_billing_nightly_verification_age_seconds",
          "Seconds since the newest complete nightly verification of the ledger began, on any "
          "replica; without one, seconds since the start of this process.")),
      violations_(metrics::Gauge(
          "tollgate_billing_nightly_verification_violations",
          "What the newest complete nightly verification of the ledger found, on any replica.")),
      started_us_(MonotonicNowUs()) {}

Result<void> NightlyVerification::Start() {
  auto database = sql::Database::Open(options_.sql);
  if (!database.ok()) return Fail{sql::ToError(database.error())};
  database_ = std::move(*database);
  thread_ = std::thread([this] { Main(); });
  return {};
}

void NightlyVerification::Stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

bool NightlyVerification::Sleep(int64_t ms) {
  std::unique_lock lock(mutex_);
  return !wake_.wait_for(lock, std::chrono::milliseconds(ms), [this] { return stopping_; });
}

void NightlyVerification::Main() {
  for (int64_t wait_ms = options_.first_ms; Sleep(wait_ms); wait_ms = options_.interval_ms) {
    if (!ready_()) continue;
    const std::string failed = Round(now_us_());
    if (failed.empty()) continue;
    log::Error("the nightly verification of the ledger failed, retrying", {{"error", failed}});
  }
}

std::string NightlyVerification::Round(int64_t now_us) {
  auto begun = NewestVerification(*database_, kNightlyActor, /*complete=*/false, now_us);
  if (!begun.ok()) return begun.error().message;
  std::string failed = IsDue(*begun, now_us) ? Verify(now_us) : "";
  const std::string unread = UpdateMetrics(now_us);
  return failed.empty() ? unread : failed;
}

std::string NightlyVerification::UpdateMetrics(int64_t now_us) {
  auto newest = NewestVerification(*database_, kNightlyActor, /*complete=*/true, now_us);
  if (!newest.ok()) return newest.error().message;
  const int64_t age_us = *newest ? now_us - (*newest)->created_us : MonotonicNowUs() - started_us_;
  age_seconds_.Set(static_cast<double>(age_us / 1'000'000));
  violations_.Set(*newest ? static_cast<double>((*newest)->report.violations.size()) : 0);
  return "";
}

std::string NightlyVerification::Verify(int64_t now_us) {
  Verification asked;
  asked.id = Id::New();
  asked.actor = kNightlyActor;
  asked.request_id = asked.id.ToHex();
  auto begun = BeginVerification(*database_, asked, asked.actor, /*may_run=*/true, now_us);
  if (!begun.ok()) return begun.error().message;
  if (!begun->fresh) return "";  // another verification runs, maybe this night's on another replica
  auto reported = std::chrono::steady_clock::now();
  std::vector<std::string> words = options_.program.empty() ? DefaultProgram() : options_.program;
  words.insert(words.end(), {"verify", "--json", "--low-priority"});
  words.insert(words.end(), options_.arguments.begin(), options_.arguments.end());
  auto report = RunVerifyProcess(words, options_.sql.url, [&](const VerifyReport& progress) {
    if (!Sleep(0)) return false;
    const auto now = std::chrono::steady_clock::now();
    if (now - reported < kReportEach) return true;
    reported = now;
    (void)UpdateMetrics(now_us_());  // a process that hangs must not hide the age
    auto wanted = ReportVerification(*database_, asked.id, progress, now_us_());
    // A run continues when its progress cannot be stored for a moment.
    return !wanted.ok() || *wanted;
  });
  const VerifyReport found = report.ok() ? *report : VerifyReport{.stopped = true};
  auto ended = EndVerification(*database_, asked.id, StateOf(found), found, now_us_());
  if (!report.ok()) return report.error();
  if (!ended.ok()) return ended.error().message;
  if (!found.violations.empty()) {
    log::Error("the nightly verification of the ledger found violations",
               {{"violations", found.violations.size()}, {"first", found.violations.front()}});
  }
  return "";
}

}  // namespace tollgate::billing
