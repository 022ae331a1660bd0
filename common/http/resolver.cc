#include "common/http/resolver.h"

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

namespace tollgate::http {

// A caller's entry in a look-up. It outlives the caller while an answer is on its way.
struct ResolverCall::Waiting {
  Loop& loop;
  std::string host;
  // The members below are used only on the loop's thread.
  ResolverCall* call;  // null: the caller has left
  Resolver::Answer answer;
};

// Shared with the threads, which may outlive the Resolver.
struct Resolver::State : std::enable_shared_from_this<Resolver::State> {
  using Waiting = ResolverCall::Waiting;

  explicit State(LookUp function) : look_up(std::move(function)) {}

  void Add(const std::shared_ptr<Waiting>& waiting);
  void Remove(const std::shared_ptr<Waiting>& waiting);

  const LookUp look_up;

 private:
  void StartThread();
  void RunThread();
  void Deliver(const std::string& host, const Answer& answer);

  std::mutex mutex_;
  // Callers of each name that is queued or being looked up. A caller that leaves removes itself, so
  // that its loop is no longer used.
  std::unordered_map<std::string, std::unordered_set<std::shared_ptr<Waiting>>> callers_;
  std::deque<std::string> queue_;  // names not yet taken by a thread
  size_t threads_ = 0;
};

void Resolver::State::Add(const std::shared_ptr<Waiting>& waiting) {
  std::lock_guard lock(mutex_);
  const bool is_new = !callers_.contains(waiting->host);
  callers_[waiting->host].insert(waiting);
  if (!is_new) return;
  queue_.push_back(waiting->host);
  if (threads_ < kMaxThreads) StartThread();
}

void Resolver::State::Remove(const std::shared_ptr<Waiting>& waiting) {
  std::lock_guard lock(mutex_);
  const auto found = callers_.find(waiting->host);
  if (found != callers_.end()) found->second.erase(waiting);
}

// Call it with the lock held.
void Resolver::State::StartThread() {
  try {
    std::thread([state = shared_from_this()] {
      pthread_setname_np(pthread_self(), "resolver");
      state->RunThread();
    }).detach();
    ++threads_;
  } catch (const std::system_error& error) {
    if (threads_ > 0) return;  // a running thread will take the name
    Deliver(queue_.back(), {{error.code().value(), boost::system::system_category()}, {}});
    queue_.pop_back();
  }
}

// Returns when the queue is empty: look-ups are rare, and starting a thread is cheap compared to
// one.
void Resolver::State::RunThread() {
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
void Resolver::State::Deliver(const std::string& host, const Answer& answer) {
  for (const std::shared_ptr<Waiting>& waiting : callers_[host]) {
    waiting->loop.Post([waiting, answer] {
      if (waiting->call == nullptr) return;
      waiting->answer = answer;
      waiting->call->waiter_.ResumeNow(true);
    });
  }
  callers_.erase(host);
}

Resolver::Resolver(LookUp look_up) : state_(std::make_shared<State>(std::move(look_up))) {}
Resolver::~Resolver() = default;

const std::shared_ptr<Resolver>& Resolver::Shared() {
  static const auto resolver = std::make_shared<Resolver>();
  return resolver;
}

Resolver::Answer Resolver::SystemLookUp(const std::string& host) {
  asio::io_context unused;
  Answer answer;
  const auto found = asio::ip::tcp::resolver(unused).resolve(host, "", answer.error);
  for (const auto& entry : found) answer.addresses.push_back(entry.endpoint().address());
  return answer;
}

ResolverCall::ResolverCall(Loop& loop, const Resolver& resolver)
    : waiter_(loop),
      state_(resolver.state_),
      waiting_(std::make_shared<Waiting>(Waiting{loop, {}, this, {}})) {}

ResolverCall::~ResolverCall() {
  waiting_->call = nullptr;
  state_->Remove(waiting_);
}

Task<Resolver::Answer> ResolverCall::Run(std::string host) {
  waiting_->host = std::move(host);
  state_->Add(waiting_);
  const bool answered = co_await waiter_.Suspend();
  if (!answered) co_return Resolver::Answer{asio::error::operation_aborted, {}};
  co_return std::move(waiting_->answer);
}

void ResolverCall::Cancel() { waiter_.Resume(false); }

}  // namespace tollgate::http
