// tollgate-scale-fill: fills a new installation, before its first start, with a workspace of the
// largest size, to measure the dashboard's pages. Like tests/demonstration it uses the admin calls
// of auth and the ledger's own operations, with a clock that it sets to the time of each.
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "common/base/clock.h"
#include "common/base/crypto.h"
#include "common/base/time_units.h"
#include "common/config/config.h"
#include "services/auth/admin/key_admin.h"
#include "services/auth/admin/workspace_admin.h"
#include "services/auth/storage/auth_store.h"
#include "services/billing/reports/rollups.h"
#include "services/billing/storage/schema.h"
#include "services/billing/storage/store.h"
#include "services/people/storage/people_store.h"
#include "tollgate/config/v1/config.pb.h"

namespace {

using namespace tollgate;           // NOLINT
using namespace tollgate::billing;  // NOLINT

constexpr int64_t kDays = 30;
constexpr char kWorkspace[] = "demo";
constexpr char kActor[] = "policy:scale";
constexpr int kImport = 500;
constexpr size_t kBatch = 1024;
// Share of the keys that are used: most keys of a large company are idle, and few make most calls.
constexpr double kUsedShare = 0.03;

struct Options {
  std::string config;
  int64_t requests = 10'000'000;
  int keys = 100'000;
  int members = 1'000;
};

int Failed(const std::string& why) {
  std::fprintf(stderr, "tollgate-scale-fill: %s\n", why.c_str());
  return 1;
}

auth::Caller Filler() {
  auth::Caller caller;
  caller.actor = kActor;
  caller.installation = true;
  return caller;
}

// Returns the ids of the keys, or an error.
BasicResult<std::vector<std::string>, std::string> MakeKeys(auth::AuthStore& store, int count) {
  std::vector<std::string> ids;
  while (static_cast<int>(ids.size()) < count) {
    admin::v1::ImportKeysRequest request;
    request.set_parent(std::string("workspaces/") + kWorkspace);
    request.set_request_id("scale-" + std::to_string(ids.size()));
    for (int n = static_cast<int>(ids.size()); n < count && request.keys_size() < kImport; ++n) {
      admin::v1::ImportedKey& key = *request.add_keys();
      key.mutable_key()->set_display_name("service-" + std::to_string(n));
      key.set_sha256(Sha256("scale-key-" + std::to_string(n)));
    }
    auto made = auth::KeyAdmin(store).Import(Filler(), request);
    if (!made) return Fail{made.error().message};
    for (const admin::v1::Key& key : made->keys()) {
      ids.push_back(key.name().substr(key.name().rfind('/') + 1));
    }
  }
  return ids;
}

// The rows that accepted invitations leave.
BasicResult<void, std::string> MakeMembers(auth::AuthStore& store, const Clock& clock, int count) {
  people::PeopleStore people(store.database(), clock, {});
  auto done = people.database().Write([&](people::PeopleTx& tx) -> auth::AdminResult<void> {
    for (int n = 0; n < count; ++n) {
      people::Person person;
      person.user_id = "scale-" + std::to_string(n);
      person.email = "person-" + std::to_string(n) + "@scale.invalid";
      person.display_name = "Person " + std::to_string(n);
      person.created_us = tx.now_us();
      if (auto made = people::InsertPerson(tx, person); !made) return made;
      auto put = people::PutMembership(
          tx, kWorkspace, person.user_id,
          n % 10 == 0 ? people::Role::ROLE_VIEWER : people::Role::ROLE_DEVELOPER);
      if (!put) return put;
      auto audited = tx.Audit(
          people::RecordOf({kActor, ""}, "member.add", kWorkspace, "user:" + person.user_id));
      if (!audited) return audited;
    }
    return {};
  });
  if (!done) return Fail{done.error().message};
  return {};
}

class Requests {
 public:
  Requests(std::vector<std::string> keys, int64_t end_us)
      : keys_(std::move(keys)), end_us_(end_us) {}

  BasicResult<void, std::string> Book(const std::string& url, int64_t count) {
    sql::Database::Options options;
    options.url = url;
    options.deferred_sync = true;
    options.statement_timeout_ms = 600'000;
    auto database = sql::Database::Open(options);
    if (!database) return Fail{database.error().message};
    if (auto done = MigrateLedger(**database); !done) return Fail{done.error().message};
    auto connection = (*database)->Connect();
    if (!connection) return Fail{connection.error().message};
    int64_t now_us = end_us_ - kDays * kDayUs;
    auto parts = EnsurePartitions(**connection, end_us_, UtcMonth(now_us));
    if (!parts) return Fail{parts.error().message};
    AddCredit credit;
    credit.workspace = kWorkspace;
    credit.command_id = "scale-credit";
    credit.amount_nano_usd = 1'000'000 * kNanoPerUsd;
    credit.actor = kActor;
    credit.reason = "Credit for the measurement";
    if (auto done = Run(**connection, {credit}, now_us); !done) return done;
    const int64_t batches = count / static_cast<int64_t>(kBatch) + 1;
    const int64_t step_us = kDays * kDayUs / batches;
    for (int64_t n = 0; n < count; now_us += step_us) {
      std::vector<Operation> open, close;
      for (size_t i = 0; i < kBatch && n < count; ++i, ++n) Add(now_us, open, close);
      open.insert(open.end(), std::make_move_iterator(close.begin()),
                  std::make_move_iterator(close.end()));
      if (auto done = Run(**connection, open, now_us); !done) return done;
      if (n / static_cast<int64_t>(kBatch) % 200 == 0) {
        std::fprintf(stderr, "%lld requests\n", static_cast<long long>(n));
      }
    }
    // The running ledger does this all the time.
    if (auto done = FoldLedger(**connection); !done) return Fail{done.error().message};
    if (const auto log = (*database)->MakeLogSync(); log != nullptr) log->Sync();
    return {};
  }

 private:
  BasicResult<void, std::string> Run(sql::Connection& connection,
                                     const std::vector<Operation>& operations, int64_t now_us) {
    auto applied = RunBatch(connection, operations, now_us, policy_);
    if (!applied) return Fail{applied.error().message};
    if (!applied->violations.empty()) return Fail{applied->violations.front()};
    for (const Reply& reply : applied->replies) {
      if (!reply.ok) return Fail{std::string("the ledger refused an operation")};
    }
    return {};
  }

  void Add(int64_t now_us, std::vector<Operation>& open, std::vector<Operation>& close) {
    const double chance = std::generate_canonical<double, 53>(random_);
    const auto used =
        std::max<size_t>(1, static_cast<size_t>(static_cast<double>(keys_.size()) * kUsedShare));
    Authorize one;
    one.request_id = Id::Make(now_us / 1000, random_(), random_());
    one.workspace = kWorkspace;
    one.key_id = keys_[std::min(
        used - 1, static_cast<size_t>(std::pow(chance, 3) * static_cast<double>(used)))];
    const bool large = random_() % 4 == 0;
    one.model = large ? "demo/sim-large" : "demo/sim-small";
    one.rates = large ? Rates{600'000, 2'400'000} : Rates{100'000, 400'000};
    one.price_version = 1;
    one.prompt_bound = 900;
    one.output_bound = 500;
    one.surface = Surface::kChatCompletions;
    one.client_request_id = "req_" + one.request_id.ToBase62();
    if (random_() % 100 == 0) {
      close.emplace_back(Void{one.request_id, one.workspace, "the engine did not answer"});
    } else {
      Settle settle;
      settle.request_id = one.request_id;
      settle.workspace = one.workspace;
      settle.sequence = 1;
      settle.usage = {static_cast<int64_t>(100 + random_() % 700), 0, 0,
                      static_cast<int64_t>(20 + random_() % 400), 0};
      settle.outcome = Outcome::kCompleted;
      settle.engine = random_() % 2 == 0 ? "sim-1" : "sim-2";
      settle.first_token_us = static_cast<int64_t>(100'000 + random_() % 400'000);
      close.emplace_back(std::move(settle));
    }
    open.emplace_back(std::move(one));
  }

  const std::vector<std::string> keys_;
  const int64_t end_us_;
  const Policy policy_;
  std::mt19937_64 random_{1};
};

int Fill(const Options& options) {
  config::v1::AllInOneConfig config;
  if (auto loaded = config::LoadFile(options.config, config); !loaded)
    return Failed(loaded.error());
  const int64_t now_us = SystemClock::Get().WallUs();
  ManualClock clock(now_us - kDays * kDayUs);
  auto store = auth::AuthStore::Open({.database = {.url = config.auth().sql().url()},
                                      .pepper = config.auth().pepper(),
                                      .brand = "tollgate"},
                                     clock);
  if (!store) return Failed(store.error().ToString());
  admin::v1::CreateWorkspaceRequest workspace;
  workspace.set_workspace_id(kWorkspace);
  workspace.mutable_workspace()->set_display_name("Demonstration");
  if (auto made = auth::WorkspaceAdmin(**store).Create(Filler(), workspace); !made)
    return Failed(made.error().message);
  auto keys = MakeKeys(**store, options.keys);
  if (!keys) return Failed(keys.error());
  if (auto made = MakeMembers(**store, clock, options.members); !made) return Failed(made.error());
  Requests requests(*std::move(keys), now_us - 60 * kSecondUs);
  if (auto done = requests.Book(config.billing().sql().url(), options.requests); !done)
    return Failed(done.error());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Fills a new installation with a workspace of the largest size",
               "tollgate-scale-fill");
  Options options;
  app.add_option("--config", options.config, "The configuration file of the all-in-one")
      ->required();
  app.add_option("--requests", options.requests, "Closed requests of the last 30 days")
      ->check(CLI::PositiveNumber);
  app.add_option("--keys", options.keys, "Virtual keys")->check(CLI::PositiveNumber);
  app.add_option("--members", options.members, "Members, in addition to the owner")
      ->check(CLI::PositiveNumber);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  return Fill(options);
}
