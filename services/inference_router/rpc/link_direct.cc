#include <optional>
#include <utility>
#include <vector>

#include "services/inference_router/rpc/link_request.h"

namespace tollgate::inference_router {
namespace {

using inference::v1::Event;
using inference::v1::GenerateRequest;

// A request from the same loop. Its events are buffered until Next takes them.
class DirectGeneration : public Generation {
 public:
  DirectGeneration(const std::shared_ptr<RequestCore>& core, Loop& loop, GenerateRequest request)
      : stream_(std::make_shared<Stream>(loop)) {
    stream_->refusal = RefusalReason(*core, request);
    if (stream_->refusal) {
      CountRefusal(*stream_->refusal);
      return;
    }
    stream_->sink = std::make_shared<RequestSink>(
        loop, [stream = std::weak_ptr<Stream>(stream_)](Event event, int64_t) {
          if (auto open = stream.lock()) open->Put(std::move(event));
        });
    loop.Spawn(RunRequest(core, std::move(request), stream_->sink, [] {}));
  }
  ~DirectGeneration() override { Cancel(); }

  Task<Result<std::vector<Event>>> Next() override {
    auto stream = stream_;  // this object may be destroyed while it waits
    while (stream->events.empty()) {
      if (stream->refusal) co_return Fail{*stream->refusal};
      if (stream->over) {
        co_return FailWith(ErrorId::kServerError, "",
                           "Next was called after the end of a generation");
      }
      co_await stream->arrived.Wait();
    }
    std::vector<Event> events;
    events.swap(stream->events);
    if (!stream->over) {
      int64_t bytes = 0;
      for (const Event& event : events) bytes += static_cast<int64_t>(event.ByteSizeLong());
      stream->sink->Grant(bytes);
    }
    co_return events;
  }
  void Cancel() override {
    if (stream_->over || stream_->refusal) return;
    stream_->over = true;
    stream_->arrived.NotifyAll();
    stream_->sink->Cancel();
  }
  bool sent() const override { return !stream_->refusal; }

 private:
  struct Stream {
    explicit Stream(Loop& loop) : arrived(loop) {}
    void Put(Event event) {
      over = over || event.has_end();
      events.push_back(std::move(event));
      arrived.NotifyAll();
    }
    std::shared_ptr<RequestSink> sink;
    std::vector<Event> events;
    bool over = false;             // End was received, or the generation was cancelled
    std::optional<Error> refusal;  // the request did not run
    Notify arrived;
  };

  std::shared_ptr<Stream> stream_;
};

}  // namespace

std::unique_ptr<Generation> StartDirectGeneration(const std::shared_ptr<RequestCore>& core,
                                                  Loop& loop, GenerateRequest request) {
  return std::make_unique<DirectGeneration>(core, loop, std::move(request));
}

}  // namespace tollgate::inference_router
