#include "tests/limits/limiters.h"

#include <map>

#include "common/base/id.h"
#include "tests/support/json.h"
#include "tollgate/config/v1/config.pb.h"

namespace tollgate::test {

namespace pb = ratelimit::v1;

struct Limiters::Shared {
  Load load;
  std::atomic<bool> stopped{false};
  std::atomic<int> callers{0};
  std::atomic<int64_t> granted{0}, refused{0}, failed{0}, local{0}, running{0}, most{0};
  // Slots by client, as in a gateway's SlotKeeper; used on the client's loop.
  std::vector<std::map<std::string, pb::RenewItem>> slots;
};

Limiters::Limiters(int processes, int clients, const std::string& settings)
    : client_count_(clients) {
  for (int i = 0; i < processes; ++i) {
    const std::string base = folder_.path() + "/ratelimit-" + std::to_string(i + 1);
    WriteFile(base + ".yaml",
              "host:\n  threads: 1\n  insecure_plaintext: true\n  ops_listen: 127.0.0.1:0\n  "
              "grpc_listen: 127.0.0.1:0\n"
              "  address_file: " +
                  base + ".addresses\nratelimit:\n" + settings);
    processes_.push_back(std::make_unique<Process>(
        "ratelimit-" + std::to_string(i + 1),
        std::vector<std::string>{BinaryPath("tollgate-ratelimit"), "--config", base + ".yaml"},
        base + ".log"));
  }
}

Limiters::~Limiters() {
  if (shared_) (void)StopLoad();
  if (loops_) {
    for (int i = 0; i < client_count_; ++i) {
      loops_->loop(i).RunAndWait([&] { clients_[static_cast<size_t>(i)].reset(); });
    }
    factory_->Stop();
    loops_->Stop();
  }
}

bool Limiters::Start() {
  std::string target;
  for (size_t i = 0; i < processes_.size(); ++i) {
    if (!processes_[i]->Start()) return false;
    const std::string file = folder_.path() + "/ratelimit-" + std::to_string(i + 1) + ".addresses";
    std::string address;
    const bool found = WaitUntil(
        [&] {
          const auto addresses = Json::Parse(ReadFile(file));
          if (addresses && addresses->is_object()) address = (*addresses)["grpc"].str();
          return !address.empty() || !processes_[i]->Running();
        },
        20'000);
    if (!found || address.empty()) return false;
    target += (target.empty() ? "" : ",") + address;
  }
  config::v1::TargetsConfig targets;
  targets.set_ratelimit(target);
  factory_ = MakeClientFactory(targets, channels_, direct_);
  loops_ = std::make_unique<LoopPool>(client_count_);
  loops_->Start();
  for (int i = 0; i < client_count_; ++i) {
    loops_->loop(i).RunAndWait([&] { clients_.push_back(factory_->RateLimit(loops_->loop(i))); });
  }
  return true;
}

Task<void> Limiters::Call(Loop& loop, RateLimitClient& client, std::shared_ptr<Shared> shared,
                          int64_t first_ms) {
  const size_t index = static_cast<size_t>(loop.index());
  co_await loop.Sleep(first_ms);
  while (!shared->stopped) {
    pb::AcquireItem item;
    item.set_lease_id(Id::New().ToBytes());
    item.set_workspace_id("w");
    item.set_key_id("k");
    *item.mutable_workspace_limits() = shared->load.limits;
    auto answer = co_await client.Acquire(item);
    if (!answer) {
      ++shared->failed;
      // Like a gateway: the slot may have been granted.
      pb::ReleaseItem release;
      release.set_lease_id(item.lease_id());
      release.set_workspace_id("w");
      release.set_key_id("k");
      release.set_refund(true);
      co_await client.Release(std::move(release));
    } else if (!answer->granted()) {
      ++shared->refused;
    } else {
      ++shared->granted;
      if (answer->local_share()) ++shared->local;
      const int64_t now = ++shared->running;
      int64_t most = shared->most;
      while (now > most && !shared->most.compare_exchange_weak(most, now)) {
      }
      pb::RenewItem slot;
      slot.set_lease_id(item.lease_id());
      slot.set_workspace_id("w");
      slot.set_key_id("k");
      *slot.mutable_workspace_limits() = item.workspace_limits();
      shared->slots[index][item.lease_id()] = std::move(slot);
      if (shared->load.hold_ms > 0) co_await loop.Sleep(shared->load.hold_ms);
      --shared->running;
      shared->slots[index].erase(item.lease_id());
      pb::ReleaseItem release;
      release.set_lease_id(item.lease_id());
      release.set_workspace_id("w");
      release.set_key_id("k");
      co_await client.Release(std::move(release));
    }
    co_await loop.Sleep(shared->load.pause_ms);
  }
  --shared->callers;
}

Task<void> Limiters::RenewForEver(Loop& loop, RateLimitClient& client,
                                  std::shared_ptr<Shared> shared, size_t index) {
  int64_t renewed_us = MonotonicUs();
  while (!shared->stopped) {
    co_await loop.Sleep(100);
    if (MonotonicUs() - renewed_us < 3'000'000) continue;
    renewed_us = MonotonicUs();
    std::vector<pb::RenewItem> items;
    for (const auto& [id, item] : shared->slots[index]) items.push_back(item);
    const std::vector<std::string> restored = co_await client.Renew(std::move(items));
    for (const std::string& id : restored) {
      if (shared->slots[index].contains(id)) continue;
      pb::ReleaseItem release;
      release.set_lease_id(id);
      release.set_workspace_id("w");
      release.set_refund(true);
      co_await client.Release(std::move(release));
    }
  }
  --shared->callers;
}

void Limiters::StartLoad(const Load& load) {
  shared_ = std::make_shared<Shared>();
  shared_->load = load;
  shared_->callers = load.callers + client_count_;
  shared_->slots.resize(static_cast<size_t>(client_count_));
  for (int i = 0; i < load.callers; ++i) {
    Loop& loop = loops_->loop(i % client_count_);
    RateLimitClient& client = *clients_[static_cast<size_t>(i % client_count_)];
    const int64_t first_ms = load.pause_ms * i / load.callers;
    loop.Post([&loop, &client, shared = shared_, first_ms] {
      loop.Spawn(Call(loop, client, shared, first_ms));
    });
  }
  for (int i = 0; i < client_count_; ++i) {
    Loop& loop = loops_->loop(i);
    loop.Post([&loop, &client = *clients_[static_cast<size_t>(i)], shared = shared_, i] {
      loop.Spawn(RenewForEver(loop, client, shared, static_cast<size_t>(i)));
    });
  }
}

Limiters::Count Limiters::Taken() const {
  return {.granted = shared_->granted,
          .refused = shared_->refused,
          .failed = shared_->failed,
          .local = shared_->local,
          .most_running = shared_->most};
}

int64_t Limiters::TakeMostRunning() { return shared_->most.exchange(shared_->running); }

Limiters::Count Limiters::StopLoad() {
  shared_->stopped = true;
  (void)WaitUntil([&] { return shared_->callers == 0; }, 20'000);
  const Count count = Taken();
  shared_.reset();
  return count;
}

}  // namespace tollgate::test
