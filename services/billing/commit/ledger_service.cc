#include "services/billing/commit/ledger_service.h"

#include <algorithm>
#include <chrono>

#include "common/base/try.h"
#include "common/observability/log.h"
#include "services/billing/reports/reports.h"
#include "services/billing/storage/dead_letters.h"
#include "services/billing/storage/distribute.h"
#include "services/billing/storage/idempotency_keys.h"
#include "services/billing/storage/schema.h"
#include "services/billing/storage/store.h"
#include "services/billing/storage/wallet_check.h"

namespace tollgate::billing {
namespace {

constexpr int kReaders = 2;
constexpr size_t kMaxReads = 256;
// A PostgreSQL writer that hangs within a transaction blocks the workspaces whose wallets it has
// locked. The server ends it after kIdleInTransactionMs, and other writers continue without these
// workspaces after kLockTimeoutMs (docs/design/failures.md).
constexpr int kIdleInTransactionMs = 1000;
constexpr int kLockTimeoutMs = 300;
// A hung or lost server keeps a writer, and with it the workspaces of its batch, for this time plus
// two seconds: less than a fail-over takes.
constexpr int kStatementTimeoutMs = 5000;
// Replaces kStatementTimeoutMs on a distributed ledger, so that calls behind batches of a hung node
// can be answered within two seconds.
constexpr int kNodeTimeoutMs = 1500;

sql::Database::Options ForWriters(sql::Database::Options options) {
  options.idle_in_transaction_ms = kIdleInTransactionMs;
  options.lock_timeout_ms = kLockTimeoutMs;
  options.statement_timeout_ms = kStatementTimeoutMs;
  options.distributed_timeout_ms = kNodeTimeoutMs;
  options.by_key_only = true;
  return options;
}
// Sleeping this much too long means that the process was stopped and could not receive heartbeats.
constexpr std::chrono::seconds kStopped(1);
// Longer than a step of the maintenance waits for a lock or on a busy machine.
constexpr std::chrono::seconds kStepLimit(2);
// Interval of creating partitions and deleting old idempotency keys.
constexpr int64_t kHourlyUs = 3600LL * 1'000'000;
constexpr int kDeleteBatch = 500;
// Interval of searches for transactions in doubt, and the minimum age of those found.
constexpr int64_t kDoubtsUs = 10'000'000;

class SqlRunner : public BatchRunner {
 public:
  SqlRunner(const sql::Database& database, const Policy& policy)
      : database_(database), policy_(policy) {}

  sql::SqlResult<Applied> Run(std::span<const Operation> operations, int64_t now_us) override {
    if (!connection_ || !connection_->healthy()) {
      TRY(Reconnect());
    }
    return RunBatch(*connection_, operations, now_us, policy_,
                    [&](State& state) { return checker_.Check(*connection_, state, now_us); });
  }

  sql::SqlResult<void> Reconnect() override {
    if (connection_) {
      return connection_->healthy() ? sql::SqlResult<void>() : connection_->Reconnect();
    }
    TRY(auto connected, database_.Connect());
    connection_ = std::move(connected);
    return {};
  }

  sql::SqlResult<std::vector<std::string>> Locked(std::span<const Operation> operations) override {
    return LockedWorkspaces(*connection_, operations);
  }

  sql::SqlResult<std::string> FreezeIfBroken(const std::string& workspace) override {
    return FreezeBrokenWallet(*connection_, workspace);
  }

 private:
  const sql::Database& database_;
  const Policy policy_;
  std::unique_ptr<sql::Connection> connection_;
  WalletChecker checker_;
};

}  // namespace

LedgerService::LedgerService(Options options, const Clock& clock)
    : options_(std::move(options)),
      clock_(clock),
      busy_(options_.lease_above_per_second),
      metrics_(busy_) {}

LedgerService::~LedgerService() { Stop(); }

Result<void> LedgerService::Start() {
  sql::Database::Options for_reads = options_.sql;
  // Readers must not use up the connections of the probe and of the search for recalls: the
  // database would seem unreachable, and recalls would be late.
  for_reads.connections = std::max(for_reads.connections, kReaders + 2);
  auto database = sql::Database::Open(std::move(for_reads));
  if (!database.ok()) return Fail{sql::ToError(database.error())};
  database_ = std::move(*database);
  auto for_writers = sql::Database::Open(ForWriters(options_.sql));
  if (!for_writers.ok()) return Fail{sql::ToError(for_writers.error())};
  write_database_ = std::move(*for_writers);
  if (!options_.reports.sql.url.empty()) {
    reports_ = std::make_unique<ReportStandby>(options_.reports, options_.sql, clock_);
    TRY(reports_->Start());
  }
  const bool sqlite = database_->dialect() == sql::Dialect::kSqlite;
  std::vector<std::unique_ptr<BatchRunner>> runners;
  // SQLite allows one writer: more connections would wait for each other.
  const int workers = sqlite ? 1 : std::max(1, options_.sql.connections);
  for (int i = 0; i < workers; ++i) {
    runners.push_back(std::make_unique<SqlRunner>(*write_database_, options_.policy));
    if (sqlite) {
      if (auto opened = runners.back()->Reconnect(); !opened.ok()) {
        return Fail{sql::ToError(opened.error())};
      }
    }
  }
  group_commit_ = std::make_unique<GroupCommit>(options_.group_commit, clock_, std::move(runners),
                                                &metrics_, database_->MakeLogSync());
  if (sqlite) {
    TRY(Open());
  } else {
    group_commit_->WatchNodes([this](int32_t node) {
      auto connection = write_database_->Connect();
      if (!connection.ok()) return false;
      auto answers = NodeAnswers(**connection, node);
      return answers.ok() && *answers;
    });
  }
  threads_.emplace_back([this] { MaintenanceMain(); });
  for (int i = 0; i < kReaders; ++i) threads_.emplace_back([this] { ReaderMain(); });
  if (on_recalls_) {
    recalls_.Start("ledger-recalls", std::chrono::milliseconds(options_.recall_interval_ms),
                   [this] { FindRecalls(); });
  }
  return {};
}

Result<void> LedgerService::Open() {
  if (auto migrated = MigrateLedger(*database_); !migrated.ok()) {
    return Fail{sql::ToError(migrated.error())};
  }
  // Needed before the first batch.
  if (auto read = ReadClocks(); !read.ok()) return Fail{sql::ToError(read.error())};
  if (auto read = ReadDistribution(); !read.ok()) return Fail{sql::ToError(read.error())};
  MakePartitions();
  group_commit_->Start();
  open_ = true;
  return {};
}

void LedgerService::Stop() {
  std::deque<ReadJob> waiting;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    waiting.swap(reads_);
  }
  // Refuse waiting reads before joining any thread, since their callers wait as well.
  for (const ReadJob& job : waiting) job.refused(Unavailable("billing: stopping").error);
  wake_.notify_all();
  recalls_.Stop();
  if (group_commit_) group_commit_->Stop();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
  if (reports_) reports_->Stop();
  // The maintenance thread may have created it since.
  if (group_commit_) group_commit_->Stop();
  open_ = false;
}

bool LedgerService::Ready() const {
  // A hung database does not answer at all.
  const auto begun = step_begun_.load();
  const bool hangs = begun != kIdle && std::chrono::steady_clock::now() - begun > kStepLimit;
  return open_ && reached_ && !hangs && group_commit_->available();
}

void LedgerService::Submit(std::vector<Operation> operations, Done done) {
  if (!open_) return done(Unavailable("billing: the database is not open yet"));
  group_commit_->Submit(std::move(operations), std::move(done));
}

void LedgerService::Read(std::function<void(sql::Database&)> read,
                         std::function<void(Error)> refused, std::function<bool()> cancelled) {
  {
    const std::lock_guard lock(mutex_);
    if (open_ && !stopping_ && reads_.size() < kMaxReads) {
      reads_.push_back({std::move(read), std::move(refused), std::move(cancelled)});
      wake_.notify_all();
      return;
    }
  }
  refused(Unavailable("billing: not open, stopping, or too many reads at once").error);
}

void LedgerService::ReaderMain() {
  while (true) {
    ReadJob job;
    {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [this] { return stopping_ || !reads_.empty(); });
      if (stopping_) return;
      job = std::move(reads_.front());
      reads_.pop_front();
    }
    if (job.cancelled()) {
      job.refused(Unavailable("billing: the caller has left").error);
      continue;
    }
    // Stop waits for running reads.
    const sql::CancelScope scope([this, &job] { return stopping_ || job.cancelled(); });
    job.read(*database_);
  }
}

void LedgerService::NextStep(Asks asks) {
  // On a distributed ledger this step may wait for a lost node while the others keep serving.
  step_begun_ = asks == Asks::kAllNodes && distributed_ ? kIdle : std::chrono::steady_clock::now();
}

bool LedgerService::Sleep(int64_t ms) {
  step_begun_ = kIdle;
  std::unique_lock lock(mutex_);
  return !wake_.wait_for(lock, std::chrono::milliseconds(ms), [this] { return stopping_.load(); });
}

void LedgerService::MaintenanceMain() {
  while (!open_) {
    const auto opened = Open();
    if (opened.ok()) break;
    log::Warn("the ledger cannot open its database, retrying",
              {{"error", opened.error().ToString()}});
    if (!Sleep(200)) return;
  }
  log::Info("the ledger is open");
  DeleteIdempotencyKeys();
  int64_t hourly_us = clock_.MonotonicUs();
  const auto expected = std::chrono::milliseconds(options_.expiry_interval_ms);
  // A later answer counts as an outage: the database hung.
  const auto late = std::max<std::chrono::microseconds>(
      kStopped, std::chrono::microseconds(options_.policy.hold_ttl_us / 4));
  // Uses real time, as Sleep does.
  for (auto begun = std::chrono::steady_clock::now(); Sleep(options_.expiry_interval_ms);
       begun = std::chrono::steady_clock::now()) {
    const auto woken = std::chrono::steady_clock::now();
    NextStep(Asks::kCoordinator);
    reached_ = Probe();
    const auto answered = std::chrono::steady_clock::now();
    if (!reached_ || woken - begun > expected + kStopped || answered - woken > late) {
      interrupted_us_ = clock_.MonotonicUs();
    }
    busy_.Tick(clock_.MonotonicUs());
    // Heartbeats for workspaces of a lost node are refused meanwhile.
    if (!AllNodesAnswer()) interrupted_us_ = clock_.MonotonicUs();
    const sql::CancelScope scope([this] { return !AllNodesAnswer(); });
    ExpireHolds();
    ExpireLeases();
    if (clock_.MonotonicUs() - hourly_us < kHourlyUs) continue;
    hourly_us = clock_.MonotonicUs();
    MakePartitions();
    DeleteIdempotencyKeys();
  }
}

void LedgerService::MakePartitions() {
  NextStep(Asks::kAllNodes);
  auto made = database_->Transact(sql::TxMode::kWrite, [this](sql::Connection& connection) {
    return EnsurePartitions(connection, clock_.WallUs());
  });
  if (made.ok()) return;
  log::Warn(
      "the next months' partitions of the ledger's tables could not be made; rows of a month "
      "without a partition go to the table's default partition",
      {{"error", made.error().message}});
}

void LedgerService::DeleteIdempotencyKeys() {
  while (true) {
    NextStep(Asks::kAllNodes);
    auto deleted = billing::DeleteIdempotencyKeys(
        *database_, group_commit_->NowUs() - options_.policy.idempotency_us, kDeleteBatch);
    if (!deleted.ok()) {
      log::Warn("old idempotency keys could not be deleted, retrying in an hour",
                {{"error", deleted.error().message}});
      return;
    }
    if (*deleted < kDeleteBatch || !Sleep(0)) return;
  }
}

sql::SqlResult<void> LedgerService::ReadClocks() {
  LedgerClock& clock = group_commit_->ledger_clock();
  if (database_->dialect() == sql::Dialect::kPostgres && options_.database_time) {
    TRY(auto connection, database_->Borrow());
    const int64_t asked_us = clock_.MonotonicUs();
    int64_t database_us = 0;
    TRY(connection->Query("SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS BIGINT)",
                          {}, [&](const sql::Row& row) { database_us = row.Int(0); }));
    clock.OnDatabaseTime(database_us, asked_us, clock_.MonotonicUs());
  }
  metrics_.SetClocks(clock.ahead());
  return {};
}

sql::SqlResult<void> LedgerService::ReadDistribution() {
  TRY(auto connection, database_->Borrow());
  TRY(auto distributed, IsDistributed(*connection));
  distributed_ = distributed;
  group_commit_->SetOneShard(distributed);
  if (!distributed) return {};
  if (!connection->distributed()) return (connection)->Reconnect();
  TRY(auto nodes, ReadNodes(*connection));
  group_commit_->SetNodes(std::move(nodes));
  return {};
}

void LedgerService::LookForDoubts() {
  if (!distributed_ || clock_.MonotonicUs() - looked_for_doubts_us_ < kDoubtsUs) return;
  looked_for_doubts_us_ = clock_.MonotonicUs();
  auto connection = database_->Borrow();
  if (!connection.ok()) return;
  auto in_doubt = CountInDoubt(**connection, kDoubtsUs / 1'000'000);
  if (in_doubt.ok()) metrics_.SetInDoubt(*in_doubt);
}

bool LedgerService::Probe() {
  const bool has_time = ReadClocks().ok();  // without an answer the clock runs on
  const bool has_distribution = ReadDistribution().ok();
  if (!AllNodesAnswer()) return has_time && has_distribution;
  NextStep(Asks::kAllNodes);
  // Does not wait for a node that batches have found unresponsive.
  const sql::CancelScope scope([this] { return !AllNodesAnswer(); });
  LookForDoubts();
  auto letters = CountOpenDeadLetters(*database_);
  if (letters.ok()) metrics_.SetOpenDeadLetters(*letters);
  auto frozen = CountFrozenByCheck(*database_);
  if (frozen.ok()) metrics_.SetFrozenByCheck(*frozen);
  // On a distributed ledger the other nodes keep serving.
  const auto answered = [this](const auto& result) { return result.ok() || distributed_; };
  return has_time && has_distribution && answered(letters) && answered(frozen);
}

}  // namespace tollgate::billing
