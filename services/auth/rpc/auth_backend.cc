#include "services/auth/rpc/auth_backend.h"

#include <chrono>
#include <future>

#include "common/base/try.h"
#include "common/observability/metrics.h"

namespace tollgate::auth {
namespace {

constexpr size_t kMaxQueuedCalls = 4096;

// How long the housekeeper waits for billing.
constexpr std::chrono::seconds kBalanceWait{5};

Housekeeper::PrepareClose WaitingFor(const Peers::Ask<std::string, bool>& ask) {
  return [&ask](const std::string& workspace) -> Result<bool> {
    if (!ask) return Unavailable("targets.billing_admin is not set in the configuration of auth");
    // shared_ptr: the answer may arrive after the timeout.
    const auto promise = std::make_shared<std::promise<Result<bool>>>();
    auto answer = promise->get_future();
    ask(workspace, [promise](Result<bool> zero) { promise->set_value(std::move(zero)); });
    if (answer.wait_for(kBalanceWait) != std::future_status::ready) {
      return Unavailable("billing did not answer");
    }
    return answer.get();
  };
}

grpc::Status Stopping() { return {grpc::StatusCode::UNAVAILABLE, "auth is stopping"}; }

}  // namespace

void CountChange(const char* kind, bool done) {
  metrics::Counter("tollgate_auth_changes_total", "Admin calls that change something, by result.",
                   {{"kind", kind}, {"result", done ? "done" : "refused"}})
      .Increment();
}

AuthBackend::AuthBackend(std::unique_ptr<AuthStore> store, int threads, const Clock& clock,
                         BackendOptions options)
    : options_(std::move(options)),
      store_(std::move(store)),
      workers_(threads, kMaxQueuedCalls, "auth-sql"),
      feed_(*store_, clock, options_.feed),
      housekeeper_(*store_, options_.housekeeping, WaitingFor(options_.peers.prepare_close),
                   [this] { feed_.Wake(); }),
      copier_(*store_, options_.audit_sources),
      refusals_(store_->database(), kAuditTables, clock) {}

Result<void> AuthBackend::Start() {
  TRY(housekeeper_.Start());
  feed_.Start();
  copier_.Start();
  refusals_.Start();
  return {};
}

AuditCheckpoints AuthBackend::checkpoints() const {
  return {.file = options_.housekeeping.checkpoint_file,
          .key_file = options_.housekeeping.checkpoint_key_file,
          .private_key = true};
}

void AuthBackend::OpenWallet(std::string workspace,
                             std::function<void(admin::AdminResult<void>)> done) {
  if (options_.peers.open_wallet) {
    return options_.peers.open_wallet(std::move(workspace), std::move(done));
  }
  done(admin::Precondition("WALLET_NOT_OPENED",
                           "the workspace " + workspace +
                               " was created, but its wallet was not opened: targets.billing_admin "
                               "is not set in the configuration of auth. Run: tollgate workspace "
                               "open " +
                               workspace));
}

std::shared_ptr<WatchStream> AuthBackend::Watch(const v1::WatchKeysRequest& request) {
  const auto stream = WatchStream::Make();
  std::unique_lock lock(mutex_);
  if (closed_) {
    stream->Close(Stopping());
    return stream;
  }
  streams_.push_back(stream);
  lock.unlock();
  const uint64_t watcher = feed_.Subscribe(
      request, [stream](const WatchStream::MessagePtr& message) { stream->Push(message); });
  // Still in time: gRPC ends a stream only after the handler has returned it.
  stream->set_on_done([self = shared_from_this(), watcher, raw = stream.get()] {
    self->feed_.Unsubscribe(watcher);
    std::lock_guard lock(self->mutex_);
    self->streams_.remove_if([raw](const auto& entry) { return entry.get() == raw; });
  });
  return stream;
}

void AuthBackend::CloseStreams() {
  std::list<std::shared_ptr<WatchStream>> streams;
  {
    std::lock_guard lock(mutex_);
    closed_ = true;
    streams = streams_;
  }
  for (const auto& stream : streams) stream->Close(Stopping());
}

void AuthBackend::Stop() {
  CloseStreams();
  workers_.Stop();
  feed_.Stop();
  copier_.Stop();
  refusals_.Stop();
  housekeeper_.Stop();
}

}  // namespace tollgate::auth
