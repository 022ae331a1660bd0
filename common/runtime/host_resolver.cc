#include "common/runtime/host_resolver.h"

#include <pthread.h>

#include <boost/asio/error.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <deque>
#include <mutex>
#include <system_error>
#include <thread>
#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace tollgate {
// Shared with the threads, which may outlive the HostResolver.
struct HostResolver::State : std::enable_shared_from_this<HostResolver::State> {
  using Caller = std::shared_ptr<const Done>;

  explicit State(LookUp function) : look_up(std::move(function)) {}

  void Add(const std::string& host, Caller caller);
  void Remove(const std::string& host, const Caller& caller);

  const LookUp look_up;

 private:
  void StartThread();
  void RunThread();
  void Deliver(const std::string& host, const Answer& answer);

  std::mutex mutex_;
  // Callers of each name that is queued or being looked up. A caller that leaves removes itself, so
  // that its loop is no longer used.
  std::unordered_map<std::string, std::unordered_set<Caller>> callers_;
  std::deque<std::string> queue_;  // names not yet taken by a thread
  size_t threads_ = 0;
};

void HostResolver::State::Add(const std::string& host, Caller caller) {
  std::lock_guard lock(mutex_);
  const bool is_new = !callers_.contains(host);
  callers_[host].insert(std::move(caller));
  if (!is_new) return;
  queue_.push_back(host);
  if (threads_ < kMaxThreads) StartThread();
}

void HostResolver::State::Remove(const std::string& host, const Caller& caller) {
  std::lock_guard lock(mutex_);
  const auto found = callers_.find(host);
  if (found != callers_.end()) found->second.erase(caller);
}

// Call it with the lock held.
void HostResolver::State::StartThread() {
  try {
    std::thread([state = shared_from_this()] {
      pthread_setname_np(pthread_self(), "resolver");
      state->RunThread();
    }).detach();
    ++threads_;
  } catch (const std::system_error& error) {
    if (threads_ > 0) return;  // a running thread will take the name
    const std::string host = std::move(queue_.back());
    queue_.pop_back();
    Deliver(host, {{error.code().value(), boost::system::system_category()}, {}});
  }
}

// Returns when the queue is empty: look-ups are rare, and starting a thread is cheap compared to
// one.
void HostResolver::State::RunThread() {
  std::unique_lock lock(mutex_);
  while (!queue_.empty()) {
    const std::string host = std::move(queue_.front());
    queue_.pop_front();
    if (callers_[host].empty()) {
      callers_.erase(host);  // all callers have left
      continue;
    }
    lock.unlock();
    const Answer answer = look_up(host);
    lock.lock();
    Deliver(host, answer);
  }
  --threads_;
}

// Call it with the lock held: it keeps callers from leaving and their loops from ending.
void HostResolver::State::Deliver(const std::string& host, const Answer& answer) {
  for (const Caller& caller : callers_[host]) (*caller)(answer);
  callers_.erase(host);
}

HostResolver::HostResolver(LookUp look_up) : state_(std::make_shared<State>(std::move(look_up))) {}
HostResolver::~HostResolver() = default;

const std::shared_ptr<HostResolver>& HostResolver::Shared() {
  static const auto resolver =
      std::make_shared<HostResolver>(System(asio::ip::resolver_base::address_configured));
  return resolver;
}

HostResolver::LookUp HostResolver::System(asio::ip::resolver_base::flags flags) {
  return [flags](const std::string& host) {
    asio::io_context unused;
    Answer answer;
    const auto found = asio::ip::tcp::resolver(unused).resolve(host, "", flags, answer.error);
    for (const auto& entry : found) answer.addresses.push_back(entry.endpoint().address());
    return answer;
  };
}

void HostResolver::Ask(const std::string& host, Done done) {
  state_->Add(host, std::make_shared<const Done>(std::move(done)));
}

// Outlives the call while an answer is on its way. Used only on the loop's thread.
struct HostLookUp::Waiting {
  HostLookUp* call;  // null: the caller has left
  HostResolver::Answer answer;
};

HostLookUp::HostLookUp(Loop& loop, const HostResolver& resolver)
    : loop_(loop),
      waiter_(loop),
      state_(resolver.state_),
      waiting_(std::make_shared<Waiting>(Waiting{this, {}})) {}

HostLookUp::~HostLookUp() {
  waiting_->call = nullptr;
  state_->Remove(host_, done_);
}

Task<HostResolver::Answer> HostLookUp::Run(std::string host) {
  host_ = std::move(host);
  done_ = std::make_shared<const HostResolver::Done>(
      [&loop = loop_, waiting = waiting_](const HostResolver::Answer& answer) {
        loop.Post([waiting, answer] {
          if (waiting->call == nullptr) return;
          waiting->answer = answer;
          waiting->call->waiter_.ResumeNow(true);
        });
      });
  state_->Add(host_, done_);
  const bool answered = co_await waiter_.Suspend();
  if (!answered) co_return HostResolver::Answer{asio::error::operation_aborted, {}};
  co_return std::move(waiting_->answer);
}

void HostLookUp::Cancel() { waiter_.Resume(false); }

}  // namespace tollgate
