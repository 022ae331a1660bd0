// Server side of a stream of calls (call_stream.h): many calls of one method share a stream. Each
// is answered when it is done, in any order.
//
//   rpc::CallStreams<AcquireCallsRequest, AcquireCallsResponse> streams_(
//       [this](const AcquireRequest& request, AcquireResponse& response, auto done) { … });
//   grpc::ServerBidiReactor<AcquireCallsRequest, AcquireCallsResponse>* AcquireCalls(
//       grpc::CallbackServerContext*) override {
//     return streams_.Open();
//   }
#pragma once

#include <grpcpp/support/server_callback.h>

#include <cstdlib>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <unordered_set>
#include <utility>

#include "common/base/clock.h"
#include "common/rpc/channel.h"
#include "common/rpc/error_detail.h"
#include "common/rpc/error_status.h"

namespace tollgate::rpc {

// Limit of calls per stream that run or wait to be written. Further calls are not read.
inline constexpr int kMaxCallsOfAStream = 256;

// Call: a message with `call` and `request`. Reply: a message with `call` and `response` or
// `error`. Thread-safe. The destructor ends the streams and does not wait for them.
template <typename Call, typename Reply>
class CallStreams {
 public:
  using Request = std::decay_t<decltype(std::declval<const Call&>().request())>;
  using Response = std::decay_t<decltype(std::declval<const Reply&>().response())>;
  // Serves one call without blocking. done is called once, on any thread, possibly before Serve
  // returns. Both messages live until then.
  using Serve = std::function<void(const Request&, Response&, std::function<void(grpc::Status)>)>;

  // After max_age_ms, give or take a tenth, a stream asks its client for a new one, which opens on
  // a connection with current certificates.
  explicit CallStreams(Serve serve, int64_t max_age_ms = kMaxConnectionAgeMs)
      : state_(std::make_shared<State>(std::move(serve), max_age_ms)) {}
  ~CallStreams() { Close(); }
  CallStreams(const CallStreams&) = delete;
  CallStreams& operator=(const CallStreams&) = delete;

  grpc::ServerBidiReactor<Call, Reply>* Open() {
    auto stream = std::make_shared<Stream>(state_);
    stream->Begin(stream);
    return stream.get();
  }

  // Answers running calls and asks for no more; clients move to other replicas. New streams are
  // refused.
  void Close() {
    std::unordered_set<std::shared_ptr<Stream>> streams;
    {
      std::lock_guard lock(state_->mutex);
      state_->closed = true;
      streams.swap(state_->streams);
    }
    for (const auto& stream : streams) stream->End();
  }

 private:
  class Stream;

  struct State {
    State(Serve serve, int64_t max_age_ms) : serve(std::move(serve)), max_age_ms(max_age_ms) {}
    const Serve serve;
    const int64_t max_age_ms;
    std::mutex mutex;  // never held together with a stream's mutex
    std::unordered_set<std::shared_ptr<Stream>> streams;
    bool closed = false;
  };

  // gRPC allows one outstanding read, one outstanding write, and one Finish, which must not overlap
  // a write.
  class Stream : public grpc::ServerBidiReactor<Call, Reply> {
   public:
    explicit Stream(std::shared_ptr<State> state)
        : state_(std::move(state)),
          // Randomised, so that streams do not all end at once.
          old_us_(SystemClock::Get().MonotonicUs() +
                  state_->max_age_ms * (900 + std::rand() % 200)) {}

    void Begin(std::shared_ptr<Stream> self) {
      self_ = self;
      bool closed = false;
      {
        std::lock_guard lock(state_->mutex);
        closed = state_->closed;
        if (!closed) state_->streams.insert(std::move(self));
      }
      if (closed) return this->Finish(ToStatus(Unavailable("the service is stopping").error));
      reading_ = std::make_shared<Running>();
      this->StartRead(&reading_->call);
    }

    void End() {
      std::unique_lock lock(mutex_);
      ending_ = true;
      FinishIfDone(lock);
    }

   private:
    struct Running {
      Call call;
      Reply reply;
    };

    void OnReadDone(bool ok) override {
      std::unique_lock lock(mutex_);
      if (!ok || ending_ || broken_) {  // the client sends no more calls, or is lost
        ending_ = true;
        return FinishIfDone(lock);
      }
      auto running = std::exchange(reading_, std::make_shared<Running>());
      const bool read_on = ++running_ < kMaxCallsOfAStream;
      paused_ = !read_on;
      if (!announced_ && SystemClock::Get().MonotonicUs() >= old_us_) {
        announced_ = true;
        ++running_;
        Queue(lock, std::make_shared<Running>());  // call 0
        lock.lock();
      }
      // Holds the lock, so that no other thread finishes the stream. Within a reaction gRPC runs no
      // other callback until it returns.
      if (read_on && !finished_) this->StartRead(&reading_->call);
      lock.unlock();
      state_->serve(running->call.request(), *running->reply.mutable_response(),
                    [self = self_, running](const grpc::Status& status) {
                      running->reply.set_call(running->call.call());
                      if (!status.ok()) {
                        ToDetail(FromStatus(status), *running->reply.mutable_error());
                      }
                      std::unique_lock lock(self->mutex_);
                      self->Queue(lock, running);
                    });
    }

    // Releases the lock.
    void Queue(std::unique_lock<std::mutex>& lock, std::shared_ptr<Running> done) {
      if (broken_ || finished_) {
        --running_;
        return FinishIfDone(lock);
      }
      replies_.push_back(std::move(done));
      if (replies_.size() > 1) return lock.unlock();  // another one is being written
      const Reply* next = &replies_.front()->reply;
      lock.unlock();
      this->StartWrite(next);
    }

    void OnWriteDone(bool ok) override {
      std::unique_lock lock(mutex_);
      replies_.pop_front();
      --running_;
      if (!ok) {
        broken_ = true;
        running_ -= static_cast<int>(replies_.size());
        replies_.clear();
      }
      if (paused_ && !ending_ && !broken_ && running_ <= kMaxCallsOfAStream / 2) {
        paused_ = false;
        this->StartRead(&reading_->call);
      }
      if (replies_.empty()) return FinishIfDone(lock);
      const Reply* next = &replies_.front()->reply;
      lock.unlock();
      this->StartWrite(next);
    }

    void OnCancel() override {
      std::unique_lock lock(mutex_);
      broken_ = true;
      FinishIfDone(lock);
    }

    // Releases the lock.
    void FinishIfDone(std::unique_lock<std::mutex>& lock) {
      const bool done = broken_ || (ending_ && running_ == 0);
      const bool finish = done && replies_.empty() && !finished_;
      if (finish) finished_ = true;
      lock.unlock();
      if (finish) this->Finish(grpc::Status::OK);
    }

    void OnDone() override {
      const auto self = std::move(self_);
      std::lock_guard lock(state_->mutex);
      state_->streams.erase(self);
    }

    const std::shared_ptr<State> state_;
    const int64_t old_us_;
    std::shared_ptr<Stream> self_;  // until OnDone
    std::mutex mutex_;
    std::shared_ptr<Running> reading_;              // the next call is read into it
    std::deque<std::shared_ptr<Running>> replies_;  // the first one is being written
    int running_ = 0;  // calls being served or waiting to be written, including the announcement
    bool paused_ = false;
    bool announced_ = false;
    bool ending_ = false;
    bool broken_ = false;  // writes fail from now on
    bool finished_ = false;
  };

  const std::shared_ptr<State> state_;
};

}  // namespace tollgate::rpc
