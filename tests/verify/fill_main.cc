// Fills a ledger with closed requests of a year through the ledger's own rules and storage, without
// services, and measures the report on its busiest key: for proofs on large databases.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/time_units.h"
#include "services/billing/reports/reports.h"
#include "services/billing/storage/schema.h"
#include "services/billing/storage/store.h"

namespace {

using namespace tollgate;           // NOLINT
using namespace tollgate::billing;  // NOLINT

constexpr int64_t kYearUs = 365 * kDayUs;
constexpr int kBatch = 1024;
constexpr int kWorkspaces = 100;
constexpr const char* kBusyWorkspace = "w0";
constexpr const char* kBusyKey = "busy";

// Every second request belongs to the busy workspace; the others of a batch belong to a few
// workspaces.
std::string WorkspaceOfRequest(int64_t n) {
  return "w" + std::to_string(n % 2 == 0 ? 0 : (n / kBatch * 4 + n / 2 % 4) % kWorkspaces);
}

// Three of four requests of the busy workspace use one key.
std::string KeyOfRequest(int64_t n) {
  return n % 2 == 0 && n % 8 != 0 ? kBusyKey : "key" + std::to_string(n / 7 % 5);
}

Authorize MakeAuthorize(int64_t n, int64_t now_us) {
  Authorize op;
  op.request_id = Id::Make(now_us / 1000, 0, static_cast<uint64_t>(n));
  op.workspace = WorkspaceOfRequest(n);
  op.key_id = KeyOfRequest(n);
  op.model = "demo/model-" + std::to_string(n / 3 % 4);
  op.rates = {150'000, 600'000};
  op.price_version = 3;
  op.prompt_bound = 900;
  op.output_bound = 500;
  op.surface = Surface::kChatCompletions;
  op.client_request_id = "req-" + std::to_string(n);
  if (n % 4 == 0) op.key_quota_nano_usd = 1'000'000 * kNanoPerUsd;
  return op;
}

// Most requests are settled; some are void, some run longer, some expire and are settled late.
void Close(int64_t n, const Authorize& opened, std::vector<Operation>& now,
           std::vector<Operation>& expiries, std::vector<Operation>& late) {
  Settle settle;
  settle.request_id = opened.request_id;
  settle.workspace = opened.workspace;
  settle.sequence = 9;
  settle.usage = {700 + n % 200, n % 300, 0, 100 + n % 400, n % 50};
  settle.outcome = Outcome::kCompleted;
  settle.engine = "engine-" + std::to_string(n % 3);
  settle.first_token_us = 120'000;
  if (n % 50 == 1) {
    now.push_back(Void{opened.request_id, opened.workspace, "no engine"});
  } else if (n % 200 == 3) {
    now.push_back(Heartbeat{opened.request_id, opened.workspace, 1, {700, 0, 0, 90, 0}});
    expiries.push_back(Expire{opened.request_id, opened.workspace});
    late.push_back(settle);
  } else {
    if (n % 20 == 5) {
      now.push_back(Extend{opened.request_id, opened.workspace, 1, {700, 0, 0, 90, 0}, 800'000});
    }
    now.push_back(settle);
  }
}

std::unique_ptr<sql::Database> Open(const std::string& url, bool fill) {
  sql::Database::Options options;
  options.url = url;
  options.deferred_sync = true;
  options.statement_timeout_ms = 600'000;
  options.by_key_only = fill;
  auto database = sql::Database::Open(options);
  if (database.ok()) return std::move(*database);
  std::fprintf(stderr, "%s\n", database.error().message.c_str());
  return nullptr;
}

int Fill(const std::string& url, int64_t requests) {
  const auto database = Open(url, true);
  if (!database) return 1;
  const int64_t begin_us = SystemClock::Get().WallUs() - kYearUs;
  auto migrated = MigrateLedger(*database);
  auto connection = database->Connect();
  if (!migrated.ok() || !connection.ok()) return std::fprintf(stderr, "cannot open\n"), 1;
  auto made = EnsurePartitions(**connection, SystemClock::Get().WallUs(), UtcMonth(begin_us));
  if (!made.ok()) return std::fprintf(stderr, "%s\n", made.error().message.c_str()), 1;
  const Policy policy;
  int64_t now_us = begin_us;
  const int64_t step_us = kYearUs / (requests / kBatch + 1) - kSecondUs;
  const auto run = [&](const std::vector<Operation>& operations) {
    if (operations.empty()) return true;
    auto applied = RunBatch(**connection, operations, now_us, policy);
    if (!applied.ok()) std::fprintf(stderr, "%s\n", applied.error().message.c_str());
    if (applied.ok() && !applied->violations.empty()) {
      std::fprintf(stderr, "%s\n", applied->violations[0].c_str());
    }
    return applied.ok() && applied->violations.empty();
  };
  std::vector<Operation> credit;
  for (int w = 0; w < kWorkspaces; ++w) {
    AddCredit op;
    op.workspace = "w" + std::to_string(w);
    op.command_id = "credit";
    op.amount_nano_usd = 100'000'000 * kNanoPerUsd;
    op.actor = "fill";
    credit.push_back(op);
  }
  if (!run(credit)) return 1;
  const auto begin = std::chrono::steady_clock::now();
  std::vector<Operation> late;
  for (int64_t n = 0; n < requests;) {
    std::vector<Operation> operations;
    std::vector<Operation> closes;
    std::vector<Operation> expiries;
    std::vector<Operation> next_late;
    for (int i = 0; i < kBatch && n < requests; ++i, ++n) {
      const Authorize open = MakeAuthorize(n, now_us);
      operations.push_back(open);
      Close(n, open, closes, expiries, next_late);
    }
    // One transaction, so that each hold is written once.
    operations.insert(operations.end(), closes.begin(), closes.end());
    if (!run(operations)) return 1;
    now_us += std::max(step_us, 61 * kSecondUs);
    if (!run(expiries)) return 1;
    now_us += kSecondUs;
    if (!run(late)) return 1;
    late = std::move(next_late);
    if (n / kBatch % 100 == 0) std::fprintf(stderr, "%lld requests\n", static_cast<long long>(n));
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  std::printf("%lld requests in %.0f s\n", static_cast<long long>(requests), took.count());
  return 0;
}

// The report of the busy key over the year: with whole days, and with both ends within a day, as
// GET /api/v1/usage allows.
int Report(const std::string& url) {
  const auto database = Open(url, false);
  if (!database) return 1;
  constexpr int kRuns = 21;
  const int64_t now_us = SystemClock::Get().WallUs();
  std::vector<double> took;
  int64_t requests = 0;
  for (int i = 0; i < kRuns; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    auto report = ReadUsage(*database, kBusyWorkspace, kBusyKey, now_us - kYearUs - kDayUs,
                            now_us + 3600 * kSecondUs, now_us);
    const std::chrono::duration<double, std::milli> ms = std::chrono::steady_clock::now() - begin;
    if (!report.ok()) return std::fprintf(stderr, "%s\n", report.error().message.c_str()), 1;
    requests = report->total.requests;
    took.push_back(ms.count());
  }
  const double first = took.front();
  std::sort(took.begin(), took.end());
  std::printf(
      "{\"requests\": %lld, \"first_ms\": %.1f, \"median_ms\": %.1f, \"slowest_ms\": %.1f}\n",
      static_cast<long long>(requests), first, took[kRuns / 2], took.back());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 3 && std::string(argv[2]) == "report") return Report(argv[1]);
  if (argc != 3 || std::atoll(argv[2]) <= 0) {
    std::fprintf(stderr, "usage: tollgate-ledger-fill DATABASE-URL REQUESTS|report\n");
    return 2;
  }
  return Fill(argv[1], std::atoll(argv[2]));
}
