// Fills a ledger with closed requests through the ledger's own rules and storage, without services:
// for proofs on large databases.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "services/billing/storage/schema.h"
#include "services/billing/storage/store.h"

namespace {

using namespace tollgate;           // NOLINT
using namespace tollgate::billing;  // NOLINT

constexpr int64_t kSecondUs = 1'000'000;
constexpr int kBatch = 1024;
constexpr int kWorkspaces = 100;

// Every second request is of the first workspace.
std::string WorkspaceOfRequest(int64_t n) {
  return "w" + std::to_string(n % 2 == 0 ? 0 : n / 2 % kWorkspaces);
}

Authorize MakeAuthorize(int64_t n, int64_t now_us) {
  Authorize op;
  op.request_id = Id::Make(now_us / 1000, 0, static_cast<uint64_t>(n));
  op.workspace = WorkspaceOfRequest(n);
  op.key_id = "key" + std::to_string(n / 7 % 5);
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

// Most are settled; some are void, some run longer, some expire and are settled late.
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

int Fill(const std::string& url, int64_t requests) {
  sql::Database::Options options;
  options.url = url;
  options.deferred_sync = true;
  options.statement_timeout_ms = 600'000;
  auto database = sql::Database::Open(options);
  if (!database.ok()) return std::fprintf(stderr, "%s\n", database.error().message.c_str()), 1;
  auto migrated = MigrateLedger(**database);
  auto connection = (*database)->Connect();
  if (!migrated.ok() || !connection.ok()) return std::fprintf(stderr, "cannot open\n"), 1;
  const Policy policy;
  int64_t now_us = SystemClock::Get().WallUs() - 20LL * 24 * 3600 * kSecondUs;
  const int64_t step_us = 20LL * 24 * 3600 * kSecondUs * kBatch / (requests + kBatch);
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
    std::vector<Operation> opens;
    std::vector<Operation> closes;
    std::vector<Operation> expiries;
    std::vector<Operation> next_late;
    for (int i = 0; i < kBatch && n < requests; ++i, ++n) {
      const Authorize open = MakeAuthorize(n, now_us);
      opens.push_back(open);
      Close(n, open, closes, expiries, next_late);
    }
    if (!run(opens) || !run(closes)) return 1;
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

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: tollgate-ledger-fill DATABASE-URL REQUESTS\n");
    return 2;
  }
  return Fill(argv[1], std::atoll(argv[2]));
}
