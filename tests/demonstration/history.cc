#include "tests/demonstration/history.h"

#include <algorithm>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "common/base/clock.h"
#include "common/base/time_units.h"
#include "services/auth/admin/key_admin.h"
#include "services/auth/admin/key_policy.h"
#include "services/auth/admin/workspace_admin.h"
#include "services/auth/storage/auth_store.h"
#include "services/billing/storage/schema.h"
#include "services/billing/storage/store.h"
#include "tests/demonstration/history_plan.h"

namespace tollgate::demonstration {
namespace {

using billing::AddCredit;
using billing::Authorize;
using billing::Operation;
using billing::Outcome;
using Problem = std::string;

constexpr int64_t kQuarterUs = kHourUs / 4;
// Time between the end of the history and the first request of a person.
constexpr int64_t kRestUs = 60'000'000;
constexpr char kActor[] = "policy:demonstration";
constexpr int64_t kCapUsd = 20;
// Granted credit: day of the history, and amount.
constexpr std::pair<int, int64_t> kGrants[] = {{0, 10}, {12, 10}, {23, 15}};

auth::Caller Demonstrator() {
  auth::Caller caller;
  caller.actor = kActor;
  caller.installation = true;
  return caller;
}

Fail<Problem> Because(const std::string& what, const std::string& why) {
  return Fail{what + ": " + why};
}

// Whether the table exists and has a row.
BasicResult<bool, Problem> HasRows(sql::Database& database, const std::string& table) {
  auto connection = database.Connect();
  if (!connection) return Fail{connection.error().message};
  const bool sqlite = database.dialect() == sql::Dialect::kSqlite;
  bool exists = false;
  auto read = (*connection)
                  ->Query(sqlite ? "SELECT 1 FROM sqlite_master WHERE name = $1"
                                 : "SELECT 1 FROM pg_class WHERE relname = $1",
                          {table}, [&](const sql::Row&) { exists = true; });
  if (!read) return Fail{read.error().message};
  if (!exists) return false;
  bool found = false;
  read = (*connection)->Query("SELECT 1 FROM " + table + " LIMIT 1", {}, [&](const sql::Row&) {
    found = true;
  });
  if (!read) return Fail{read.error().message};
  return found;
}

BasicResult<void, Problem> RequireEmpty(const std::string& url,
                                        std::initializer_list<const char*> tables) {
  auto database = sql::Database::Open({.url = url});
  if (!database) return Fail{database.error().message};
  for (const char* table : tables) {
    auto found = HasRows(**database, table);
    if (!found) return Fail{found.error()};
    if (*found) {
      return Fail{Problem("nothing is changed: a store of this installation has rows in ") + table +
                  " already"};
    }
  }
  return {};
}

class History {
 public:
  explicit History(const HistoryOptions& options)
      : options_(options),
        // Starts at midnight, so that the first day is complete.
        start_us_(options.now_us / kDayUs * kDayUs - options.days * kDayUs),
        end_us_(options.now_us - kRestUs),
        clock_(start_us_),
        plan_(PlanRequests(options.seed, start_us_, end_us_)) {}

  BasicResult<HistoryMade, Problem> Make() {
    if (auto made = MakeKeys(); !made) return Fail{made.error()};
    if (auto booked = Book(); !booked) return Fail{booked.error()};
    if (auto reported = ReportUse(); !reported) return Fail{reported.error()};
    return made_;
  }

 private:
  // Moves the clock on to this day and hour of the history.
  void GoTo(int day, int hour) {
    const int64_t at = start_us_ + day * kDayUs + hour * kHourUs;
    if (at > clock_.WallUs()) clock_.StepWall(at - clock_.WallUs());
  }

  // The workspace and its keys, each created when it is first needed; the last one is disabled at
  // its end.
  BasicResult<void, Problem> MakeKeys() {
    auto store = auth::AuthStore::Open({.database = {.url = options_.auth_url},
                                        .pepper = options_.pepper,
                                        .brand = options_.brand},
                                       clock_);
    if (!store) return Because("the store of auth", store.error().ToString());
    store_ = *std::move(store);
    auth::WorkspaceAdmin workspaces(*store_);
    admin::v1::CreateWorkspaceRequest workspace;
    workspace.set_workspace_id(kDemonstrationWorkspace);
    workspace.mutable_workspace()->set_display_name("Demonstration");
    if (auto made = workspaces.Create(Demonstrator(), workspace); !made) {
      return Because("the workspace", made.error().message);
    }
    if (auto marked = workspaces.MarkDemonstration(Demonstrator(), kDemonstrationWorkspace);
        !marked) {
      return Because("the workspace", marked.error().message);
    }
    // Ordered by day, like the audit log.
    std::multimap<int, std::pair<size_t, bool>> changes;
    for (size_t n = 0; n < Keys().size(); ++n) {
      changes.emplace(Keys()[n].first_day, std::pair(n, true));
      if (Keys()[n].end_day >= 0 && Keys()[n].end_day <= options_.days) {
        changes.emplace(Keys()[n].end_day, std::pair(n, false));
      }
    }
    keys_.resize(Keys().size());
    for (const auto& [day, change] : changes) {
      GoTo(day, 0);
      auto done = change.second ? MakeKey(change.first) : DisableKey(change.first);
      if (!done) return Because(Keys()[change.first].name, done.error().message);
    }
    return {};
  }

  auth::AdminResult<void> MakeKey(size_t n) {
    admin::v1::CreateKeyRequest request;
    request.set_parent(std::string("workspaces/") + kDemonstrationWorkspace);
    request.set_request_id("demonstration-" + std::to_string(n));
    request.mutable_key()->set_display_name(Keys()[n].name);
    if (*Keys()[n].monthly_quota_usd != '\0') {
      request.mutable_key()->set_monthly_quota_usd(Keys()[n].monthly_quota_usd);
    }
    // The secret is discarded: the key exists for the history only.
    auto made = auth::KeyAdmin(*store_).Create(Demonstrator(), request);
    if (!made) return Fail{made.error()};
    const std::string& name = made->key().name();
    keys_[n] = name.substr(name.rfind('/') + 1);
    return {};
  }

  auth::AdminResult<void> DisableKey(size_t n) {
    admin::v1::DisableKeyRequest request;
    request.set_name(std::string("workspaces/") + kDemonstrationWorkspace + "/keys/" + keys_[n]);
    request.set_reason("the evaluation has ended");
    request.set_request_id("demonstration-end-" + std::to_string(n));
    auto disabled = auth::KeyAdmin(*store_).Disable(Demonstrator(), request);
    if (!disabled) return Fail{disabled.error()};
    return {};
  }

  // Runs each operation at its own time in its own transaction, as the real ledger would have.
  BasicResult<void, Problem> Book() {
    sql::Database::Options sql;
    sql.url = options_.billing_url;
    sql.deferred_sync = true;
    auto database = sql::Database::Open(sql);
    if (!database) return Because("the ledger", database.error().message);
    if (auto migrated = billing::MigrateLedger(**database); !migrated) {
      return Because("the ledger", migrated.error().message);
    }
    auto connection = (*database)->Connect();
    if (!connection) return Because("the ledger", connection.error().message);
    auto parts = billing::EnsurePartitions(**connection, options_.now_us, UtcMonth(start_us_));
    if (!parts) return Because("the ledger", parts.error().message);
    for (const auto& [at_us, operation] : Operations()) {
      const Operation one[] = {operation};
      auto applied = billing::RunBatch(**connection, one, at_us, policy_);
      if (!applied) return Because("the ledger", applied.error().message);
      if (!applied->violations.empty()) return Because("the ledger", applied->violations.front());
      const billing::Reply& reply = applied->replies.front();
      if (!reply.ok) {
        return Because("the ledger",
                       std::string(billing::kOperationNames[operation.index()]) +
                           " was refused: " + std::to_string(static_cast<int>(reply.denied_by)));
      }
      made_.charged_nano_usd += reply.charged_nano_usd;
    }
    made_.requests = static_cast<int64_t>(plan_.size());
    if (const auto log = (*database)->MakeLogSync(); log != nullptr) {
      log->Sync();
    }
    return {};
  }

  // Ordered by time; operations of the same instant keep their order of creation.
  std::multimap<int64_t, Operation> Operations() const {
    std::multimap<int64_t, Operation> operations;
    operations.emplace(start_us_, billing::OpenWallet{kDemonstrationWorkspace, kActor});
    billing::SetCap cap;
    cap.workspace = kDemonstrationWorkspace;
    cap.command_id = "demonstration-cap";
    cap.cap_nano_usd = kCapUsd * kNanoPerUsd;
    cap.actor = kActor;
    operations.emplace(start_us_, cap);
    for (const auto& [day, usd] : kGrants) {
      if (day > options_.days) continue;
      AddCredit credit;
      credit.workspace = kDemonstrationWorkspace;
      credit.command_id = "demonstration-credit-" + std::to_string(day);
      credit.amount_nano_usd = usd * kNanoPerUsd;
      credit.granted = true;
      credit.actor = kActor;
      credit.reason = "Credit of the demonstration";
      operations.emplace(start_us_ + day * kDayUs, credit);
    }
    for (const PlannedRequest& request : plan_) {
      Authorize open = Open(request);
      operations.emplace(request.closed_us, Close(request, open));
      operations.emplace(request.admitted_us, std::move(open));
    }
    return operations;
  }

  // The cheapest or the most expensive model of the catalog.
  const catalog::v1::Model& ModelFor(bool small) const {
    const auto by_price = [](const auto& a, const auto& b) {
      return a.price().output_pico_usd() < b.price().output_pico_usd();
    };
    const auto& models = options_.catalog.models();
    return small ? *std::ranges::min_element(models, by_price)
                 : *std::ranges::max_element(models, by_price);
  }

  Authorize Open(const PlannedRequest& request) const {
    const PlannedKey& key = Keys()[request.key];
    const catalog::v1::Model& model = ModelFor(key.small_model);
    Authorize open;
    open.request_id = Id::Make(request.admitted_us / 1000, request.random_high, request.random_low);
    open.workspace = kDemonstrationWorkspace;
    open.key_id = keys_[request.key];
    open.model = model.id();
    open.rates = {model.price().input_pico_usd(), model.price().output_pico_usd()};
    open.price_version = model.price().version();
    open.prompt_bound = request.prompt_bound;
    open.output_bound = request.output_bound;
    open.surface = key.surface;
    open.streamed = key.streamed;
    open.client_request_id = "req_" + open.request_id.ToBase62();
    if (*key.monthly_quota_usd != '\0') {
      open.key_quota_nano_usd = std::atoll(key.monthly_quota_usd) * kNanoPerUsd;
    }
    return open;
  }

  static Operation Close(const PlannedRequest& request, const Authorize& open) {
    if (request.outcome == Outcome::kFailedBeforeOutput) {
      return billing::Void{open.request_id, open.workspace, "the engine did not answer"};
    }
    billing::Settle settle;
    settle.request_id = open.request_id;
    settle.workspace = open.workspace;
    settle.sequence = 1;
    settle.usage = request.usage;
    settle.outcome = request.outcome;
    settle.engine = "sim-" + std::to_string(request.engine);
    settle.first_token_us = request.first_token_us;
    return settle;
  }

  // What gateways would have reported for the last day: uses of keys and refusals.
  BasicResult<void, Problem> ReportUse() {
    clock_.StepWall(end_us_ - clock_.WallUs());
    std::map<std::pair<size_t, int64_t>, auth::v1::KeyUse> uses;  // by key and hour
    for (const PlannedRequest& request : plan_) {
      const int64_t hour = request.admitted_us / kHourUs;
      auth::v1::KeyUse& use = uses[{request.key, hour}];
      use.set_key_id(keys_[request.key]);
      use.set_hour(hour);
      use.set_last_used_us(request.admitted_us);
      use.set_requests_in_hour(use.requests_in_hour() + 1);
      // One call in sixty was refused before a hold was opened.
      const bool failed = request.outcome == Outcome::kFailedBeforeOutput;
      if (!failed && request.random_low % 60 != 0) continue;
      auth::v1::RefusalCount& refusal = *use.add_refusals();
      refusal.set_quarter(request.admitted_us / kQuarterUs);
      refusal.set_code(failed ? "server_error" : "rate_limited");
      refusal.set_count(1);
    }
    auth::v1::ReportKeyUseRequest report;
    report.set_reporter("demonstration");
    for (auto& [key, use] : uses) {
      if (key.second < end_us_ / kHourUs - 26) use.clear_refusals();
      // The last report of a key has the time of its last use; older hours are not kept.
      *report.add_uses() = std::move(use);
      if (report.uses_size() == 500) {
        if (auto stored = Store(report); !stored) return stored;
      }
    }
    return Store(report);
  }

  BasicResult<void, Problem> Store(auth::v1::ReportKeyUseRequest& report) {
    auto stored = auth::StoreUse(*store_, {}, report);
    report.clear_uses();
    if (!stored) return Because("the use of keys", stored.error().ToString());
    return {};
  }

  const HistoryOptions& options_;
  const billing::Policy policy_;
  const int64_t start_us_;
  const int64_t end_us_;
  ManualClock clock_;
  const std::vector<PlannedRequest> plan_;
  std::unique_ptr<auth::AuthStore> store_;
  std::vector<std::string> keys_;  // ids
  HistoryMade made_;
};

}  // namespace

BasicResult<HistoryMade, std::string> MakeHistory(const HistoryOptions& options) {
  if (options.catalog.models().empty()) return Fail{Problem("the catalog has no model")};
  if (auto empty = RequireEmpty(options.auth_url, {"workspace", "audit_event"}); !empty) {
    return Fail{empty.error()};
  }
  if (auto empty = RequireEmpty(options.billing_url, {"wallet", "entry"}); !empty) {
    return Fail{empty.error()};
  }
  return History(options).Make();
}

}  // namespace tollgate::demonstration
