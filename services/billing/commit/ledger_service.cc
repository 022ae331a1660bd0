#include "services/billing/commit/ledger_service.h"

#include <algorithm>
#include <chrono>
#include <future>

#include "common/observability/log.h"
#include "services/billing/storage/reports.h"
#include "services/billing/storage/store.h"

namespace tollgate::billing {
namespace {

constexpr int kReaders = 2;
constexpr size_t kMaxReads = 256;
constexpr int kSweepBatch = 256;

class SqlRunner : public BatchRunner {
 public:
  SqlRunner(const sql::Database& database, const Policy& policy)
      : database_(database), policy_(policy) {}

  sql::SqlResult<Applied> Run(std::span<const Op> ops, int64_t now_us) override {
    if (!connection_) {
      if (auto connected = Reconnect(); !connected.ok()) return Fail{std::move(connected).error()};
    }
    return RunBatch(*connection_, ops, now_us, policy_);
  }

  sql::SqlResult<void> Reconnect() override {
    if (connection_)
      return connection_->healthy() ? sql::SqlResult<void>() : connection_->Reconnect();
    auto made = database_.Connect();
    if (!made.ok()) return Fail{std::move(made).error()};
    connection_ = std::move(*made);
    return {};
  }

 private:
  const sql::Database& database_;
  const Policy policy_;
  std::unique_ptr<sql::Connection> connection_;
};

}  // namespace

LedgerService::LedgerService(Options options, const Clock& clock)
    : options_(std::move(options)), clock_(clock) {}

LedgerService::~LedgerService() { Stop(); }

Result<void> LedgerService::Start() {
  auto database = sql::Database::Open(options_.sql);
  if (!database.ok()) return Fail{sql::ToError(database.error())};
  database_ = std::move(*database);
  const bool sqlite = database_->dialect() == sql::Dialect::kSqlite;
  std::vector<std::unique_ptr<BatchRunner>> runners;
  // SQLite has one writer; more connections would only wait for each other.
  const int workers = sqlite ? 1 : std::max(1, options_.sql.connections);
  for (int i = 0; i < workers; ++i) {
    runners.push_back(std::make_unique<SqlRunner>(*database_, options_.policy));
    if (sqlite) {
      if (auto opened = runners.back()->Reconnect(); !opened.ok()) {
        return Fail{sql::ToError(opened.error())};
      }
    }
  }
  engine_ = std::make_unique<GroupCommit>(options_.engine, clock_, std::move(runners), &observer_,
                                          database_->MakeLogSync());
  if (sqlite) {
    if (auto opened = Open(); !opened.ok()) return opened;
  }
  threads_.emplace_back([this] { KeeperMain(); });
  for (int i = 0; i < kReaders; ++i) threads_.emplace_back([this] { ReaderMain(); });
  return {};
}

Result<void> LedgerService::Open() {
  if (auto migrated = MigrateLedger(*database_); !migrated.ok()) {
    return Fail{sql::ToError(migrated.error())};
  }
  engine_->Start();
  open_ = true;
  return {};
}

void LedgerService::Stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  if (engine_) engine_->Stop();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
  if (engine_) engine_->Stop();  // the keeper may have started it in between
  std::deque<ReadJob> left;
  {
    const std::lock_guard lock(mutex_);
    left.swap(reads_);
  }
  for (const ReadJob& job : left) job.refused(Unavailable("billing: stopping").error);
  open_ = false;
}

bool LedgerService::Ready() const { return open_ && engine_->available(); }

void LedgerService::Submit(std::vector<Op> ops, Done done) {
  if (!open_) return done(Unavailable("billing: the database is not open yet"));
  engine_->Submit(std::move(ops), std::move(done));
}

void LedgerService::Read(std::function<void(sql::Database&)> read,
                         std::function<void(Error)> refused) {
  {
    const std::lock_guard lock(mutex_);
    if (open_ && !stopping_ && reads_.size() < kMaxReads) {
      reads_.push_back({std::move(read), std::move(refused)});
      wake_.notify_all();
      return;
    }
  }
  refused(Unavailable("billing: not open, stopping, or too many reports at a time").error);
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
    job.read(*database_);
  }
}

bool LedgerService::Sleep(int64_t ms) {
  std::unique_lock lock(mutex_);
  return !wake_.wait_for(lock, std::chrono::milliseconds(ms), [this] { return stopping_; });
}

void LedgerService::KeeperMain() {
  while (!open_) {
    const auto opened = Open();
    if (opened.ok()) break;
    log::Warn("the ledger waits for its database", {{"error", opened.error().ToString()}});
    if (!Sleep(200)) return;
  }
  log::Info("the ledger is open");
  while (Sleep(options_.sweep_ms)) Sweep();
}

void LedgerService::Sweep() {
  // Learning: after a start or an outage every running request gets the time to give a sign of life
  // before anything expires, so an outage cannot end live streams (reliability.md 1.6).
  if (!engine_->available() ||
      clock_.MonotonicUs() - engine_->available_since_us() < options_.policy.hold_ttl_us) {
    return;
  }
  if (auto open = CountOpenHolds(*database_); open.ok()) observer_.SetOpenHolds(*open);
  while (true) {
    auto expired = ReadExpired(*database_, engine_->Now(), kSweepBatch);
    if (!expired.ok() || expired->empty()) return;
    std::vector<Op> ops;
    for (const OpenHold& hold : *expired) {
      Op op;
      op.kind = OpKind::kExpire;
      op.id = hold.id;
      op.workspace = hold.workspace;
      ops.push_back(std::move(op));
    }
    auto ended = std::make_shared<std::promise<int64_t>>();
    auto future = ended->get_future();
    engine_->Submit(std::move(ops), [ended](Result<std::vector<Reply>> replies) {
      int64_t count = 0;
      if (replies.ok()) {
        count = std::count_if(replies->begin(), replies->end(),
                              [](const Reply& reply) { return reply.ok; });
      }
      ended->set_value(count);
    });
    const int64_t count = future.get();
    if (count > 0) log::Warn("holds expired without a settle", {{"count", count}});
    if (count == 0 || expired->size() < kSweepBatch) return;
  }
}

}  // namespace tollgate::billing
