// Server streams that push changes. Each subscriber first receives messages with the current state,
// then every published message in order, and a ping after a while without messages.
//
//   rpc::PushHub<WatchKeysResponse> hub_(loop, {.ping_ms = 1000, .make_ping = [this] { … }});
//   grpc::ServerWriteReactor<WatchKeysResponse>* WatchKeys(grpc::CallbackServerContext*,
//                                                          const WatchKeysRequest* request)
//                                                          override {
//     return hub_.Open([&] { return FirstMessages(*request); });
//   }
//   … change the state, then: hub_.Publish(message);
//
// No change is lost between the first messages and the published ones. `first` runs under the lock
// that Publish takes, so a change is in the state that `first` reads, or is published after it, or
// both. Messages need versions, so that subscribers can ignore duplicates.
#pragma once

#include <grpcpp/support/server_callback.h>

#include <cstdlib>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <unordered_set>
#include <utility>
#include <vector>

#include "common/base/clock.h"
#include "common/error/error.h"
#include "common/rpc/channel.h"
#include "common/rpc/error_status.h"
#include "common/runtime/loop.h"

namespace tollgate::rpc {

// Thread-safe. The destructor ends the streams and does not wait for them.
template <typename Message>
class PushHub {
 public:
  struct Options {
    // 0: no pings.
    int64_t ping_ms = 1000;
    std::function<Message()> make_ping;
    // Maximum of messages queued for a slow subscriber. One more ends its stream, and the
    // subscriber reconnects.
    size_t max_queued = 1024;
    // An older stream is ended, give or take a tenth. Its subscriber opens a new one, on a
    // connection with current certificates. Checked with the pings.
    int64_t max_age_ms = kMaxConnectionAgeMs;
  };

  // Pings are sent from the loop, which must outlive the hub.
  PushHub(Loop& loop, Options options) : state_(std::make_shared<State>(std::move(options))) {
    if (state_->options.ping_ms > 0 && state_->options.make_ping) {
      loop.Post([state = state_, &loop] { SchedulePing(state, loop); });
    }
  }
  ~PushHub() { Close(); }
  PushHub(const PushHub&) = delete;
  PushHub& operator=(const PushHub&) = delete;

  // Opens a stream. first() returns the first messages.
  template <typename First>
  grpc::ServerWriteReactor<Message>* Open(First first) {
    auto* stream = new Stream(state_);
    std::vector<std::shared_ptr<const Message>> begin;
    std::unique_lock lock(state_->mutex);
    if (state_->closed) {
      lock.unlock();
      stream->End(ToStatus(Unavailable("the service is stopping").error));
      return stream;
    }
    for (Message& message : first()) {
      begin.push_back(std::make_shared<const Message>(std::move(message)));
    }
    state_->streams.insert(stream);
    for (auto& message : begin) stream->Enqueue(std::move(message));
    return stream;
  }

  void Publish(Message message) {
    state_->Publish(std::make_shared<const Message>(std::move(message)));
  }

  // Ends all streams and refuses new ones.
  void Close() {
    std::lock_guard lock(state_->mutex);
    state_->closed = true;
    for (Stream* stream : state_->streams)
      stream->End(ToStatus(Unavailable("the service is stopping").error));
  }

  size_t subscribers() const {
    std::lock_guard lock(state_->mutex);
    return state_->streams.size();
  }

 private:
  class Stream;

  struct State {
    explicit State(Options options) : options(std::move(options)) {}
    void Publish(std::shared_ptr<const Message> message) {
      std::lock_guard lock(mutex);
      published = true;
      for (Stream* stream : streams) stream->Enqueue(message);
    }

    const Options options;
    std::mutex mutex;  // taken before the mutex of a stream
    std::unordered_set<Stream*> streams;
    bool closed = false;
    bool published = false;  // since the last tick of the ping timer
  };

  // gRPC allows one outstanding write, and one Finish, which must not overlap a write.
  class Stream : public grpc::ServerWriteReactor<Message> {
   public:
    explicit Stream(std::shared_ptr<State> state)
        : state_(std::move(state)),
          // Randomised, so that streams do not all end at once.
          old_us_(SystemClock::Get().MonotonicUs() +
                  state_->options.max_age_ms * (900 + std::rand() % 200)) {}

    void Enqueue(std::shared_ptr<const Message> message) {
      std::unique_lock lock(mutex_);
      if (ending_) return;
      if (queue_.size() >= state_->options.max_queued) {
        lock.unlock();
        return End(ToStatus(Unavailable("the subscriber is too slow").error));
      }
      queue_.push_back(std::move(message));
      if (writing_) return;
      writing_ = true;
      const Message* next = queue_.front().get();
      lock.unlock();
      this->StartWrite(next);
    }

    void End(grpc::Status status) {
      {
        std::lock_guard lock(mutex_);
        if (ending_) return;
        ending_ = true;
        status_ = std::move(status);
        if (writing_) return;  // OnWriteDone finishes
      }
      this->Finish(status_);
    }

    void OnWriteDone(bool ok) override {
      std::unique_lock lock(mutex_);
      queue_.pop_front();
      if (!ok && !ending_) {
        ending_ = true;
        status_ = grpc::Status::CANCELLED;
      }
      if (ending_) {
        writing_ = false;
        lock.unlock();
        return this->Finish(status_);
      }
      writing_ = !queue_.empty();
      if (!writing_) return;
      const Message* next = queue_.front().get();
      lock.unlock();
      this->StartWrite(next);
    }

    void EndIfOld(int64_t now_us) {
      if (now_us >= old_us_) End(ToStatus(Unavailable("the stream has reached its age").error));
    }

    void OnCancel() override { End(grpc::Status::CANCELLED); }

    void OnDone() override {
      {
        std::lock_guard lock(state_->mutex);
        state_->streams.erase(this);
      }
      delete this;
    }

   private:
    std::shared_ptr<State> state_;
    const int64_t old_us_;
    std::mutex mutex_;
    std::deque<std::shared_ptr<const Message>> queue_;  // writing_: the first is being written
    bool writing_ = false;
    bool ending_ = false;
    grpc::Status status_;
  };

  static void SchedulePing(std::shared_ptr<State> state, Loop& loop) {
    loop.RunAfter(state->options.ping_ms, [state, &loop] {
      bool quiet = false;
      {
        std::lock_guard lock(state->mutex);
        if (state->closed) return;
        quiet = !state->published && !state->streams.empty();
      }
      if (quiet) state->Publish(std::make_shared<const Message>(state->options.make_ping()));
      {
        std::lock_guard lock(state->mutex);
        state->published = false;
        const int64_t now_us = SystemClock::Get().MonotonicUs();
        for (Stream* stream : state->streams) stream->EndIfOld(now_us);
      }
      SchedulePing(state, loop);
    });
  }

  std::shared_ptr<State> state_;
};

}  // namespace tollgate::rpc
