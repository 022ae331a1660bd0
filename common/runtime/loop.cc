#include "common/runtime/loop.h"

#include <pthread.h>

#include <atomic>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <cassert>
#include <cstdlib>
#include <future>
#include <thread>

#include "common/base/clock.h"
#include "common/observability/log.h"
#include "common/runtime/notify.h"
#include "common/runtime/timer_wheel.h"

namespace tollgate {
namespace {

// How long a stopping pool waits for calls on other threads: longer than the deadline of any call
// of a request. Longer calls end when their owner cancels them.
constexpr int kMaxOutsideWaitMs = 3'000;

thread_local Loop* current_loop = nullptr;

[[noreturn]] void AbortOn(std::exception_ptr exception) {
  constexpr std::string_view kMessage = "uncaught exception in a coroutine";
  try {
    std::rethrow_exception(exception);
  } catch (const std::exception& e) {
    log::Error(kMessage, {{"error", e.what()}});
  } catch (...) {
    log::Error(kMessage);
  }
  std::abort();
}

class LoopImpl : public Loop {
 public:
  explicit LoopImpl(int index)
      : index_(index),
        wheel_(SystemClock::Get().MonotonicUs()),
        work_(asio::make_work_guard(io_)),
        timer_(io_.get_executor()) {}

  ~LoopImpl() override {
    // Callbacks may own coroutines, and coroutines may own timers: all are destroyed here without
    // running.
    Waiter::DestroySuspended(*this);
    wheel_.Clear();
    end_of_turn_.clear();
  }

  asio::io_context& context() override { return io_; }
  int index() const override { return index_; }

  void Post(Callback callback) override { asio::post(io_, std::move(callback)); }

  void AtEndOfTurn(Callback callback) override {
    assert(OwnsThisThread());
    // Asio queues a posted handler after everything that the last poll of the sockets found ready,
    // and polls again before it runs the handler: this is the end of the turn.
    if (end_of_turn_.empty()) asio::post(io_, [this] { RunEndOfTurn(); });
    end_of_turn_.push_back(std::move(callback));
  }

  void Spawn(Task<void> task) override {
    asio::co_spawn(io_, std::move(task), [](std::exception_ptr exception) {
      if (exception) AbortOn(exception);
    });
  }

  TimerId RunAfter(int64_t delay_ms, Callback callback) override {
    assert(OwnsThisThread());
    TimerId id = wheel_.Add(SystemClock::Get().MonotonicUs(), delay_ms * 1000, std::move(callback));
    Arm();
    return id;
  }

  void CancelTimer(TimerId timer) override { wheel_.Cancel(timer); }

  Task<void> Sleep(int64_t delay_ms) override {
    Waiter waiter(*this);
    TimerId timer = RunAfter(delay_ms, [&waiter] { waiter.ResumeNow(true); });
    // The coroutine can be destroyed while it sleeps; the timer must not outlive it.
    struct Guard {
      Loop& loop;
      TimerId timer;
      ~Guard() { loop.CancelTimer(timer); }
    } guard{*this, timer};
    co_await waiter.Suspend();
  }

  void Run() {
    current_loop = this;
    runs_ = true;
    io_.run();
    runs_ = false;
    current_loop = nullptr;
  }
  void Stop() { io_.stop(); }

 private:
  // Before the start and after the stop, the owner of the pool is alone with the loop.
  bool OwnsThisThread() const { return current_loop == this || !runs_; }

  void RunEndOfTurn() {
    // Callbacks that these callbacks register run at the end of the next turn.
    running_.swap(end_of_turn_);
    for (Callback& callback : running_) callback();
    running_.clear();
  }

  // Sets the kernel's timer to the wheel's next tick that has timers. Moving it to an earlier time
  // is rare: most new timers are due after the pending ones.
  void Arm() {
    int64_t next_us = wheel_.NextUs();
    if (next_us >= armed_us_) return;
    armed_us_ = next_us;
    timer_.expires_at(std::chrono::steady_clock::time_point(std::chrono::microseconds(next_us)));
    timer_.async_wait([this](boost::system::error_code error) {
      if (error) return;  // rearmed for an earlier time
      armed_us_ = TimerWheel::kNever;
      wheel_.Advance(SystemClock::Get().MonotonicUs());
      Arm();
    });
  }

  int index_;
  std::atomic<bool> runs_ = false;
  // Destroying io_ destroys the remaining coroutines, and their destructors use these members:
  // these must be declared before io_.
  std::vector<Callback> end_of_turn_;
  std::vector<Callback> running_;
  TimerWheel wheel_;
  asio::io_context io_{1};
  asio::executor_work_guard<Executor> work_;
  SteadyTimer timer_;
  int64_t armed_us_ = TimerWheel::kNever;
};

}  // namespace

Loop* Loop::Current() { return current_loop; }

void Loop::RunAndWait(const Callback& callback) {
  assert(Current() != this);
  std::promise<void> done;
  Post([&] {
    callback();
    done.set_value();
  });
  done.get_future().wait();
}

struct LoopPool::State {
  std::vector<std::thread> threads;
  std::atomic<uint32_t> next{0};
};

LoopPool::LoopPool(int threads) : state_(std::make_unique<State>()) {
  if (threads <= 0) threads = static_cast<int>(std::thread::hardware_concurrency());
  if (threads <= 0) threads = 1;
  for (int i = 0; i < threads; ++i) loops_.push_back(std::make_unique<LoopImpl>(i));
}

LoopPool::~LoopPool() {
  Stop();
  // Owners of calls that outlived Stop have been destroyed by now and have cancelled them.
  WaitForOutsideWork();
}

Loop& LoopPool::Next() {
  return *loops_[state_->next.fetch_add(1, std::memory_order_relaxed) % loops_.size()];
}

void LoopPool::Start() {
  if (!state_->threads.empty()) return;
  for (auto& loop : loops_) {
    auto* impl = static_cast<LoopImpl*>(loop.get());
    state_->threads.emplace_back([impl] {
      pthread_setname_np(pthread_self(), ("loop-" + std::to_string(impl->index())).c_str());
      impl->Run();
    });
  }
}

void LoopPool::Stop() {
  if (state_->threads.empty()) return;
  // The loops keep running during the wait, so that posted results are handled.
  WaitForOutsideWork();
  // Posted, so that queued callbacks still run.
  for (auto& loop : loops_) {
    auto* impl = static_cast<LoopImpl*>(loop.get());
    impl->Post([impl] { impl->Stop(); });
  }
  for (auto& thread : state_->threads) thread.join();
  state_->threads.clear();
}

void LoopPool::WaitForOutsideWork() const {
  for (int waited_ms = 0;; ++waited_ms) {
    int64_t count = 0;
    for (const auto& loop : loops_) count += loop->outside_work_;
    if (count == 0) return;
    if (waited_ms >= kMaxOutsideWaitMs) {
      log::Warn("stopping while calls of other threads are still running", {{"calls", count}});
      return;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

}  // namespace tollgate
