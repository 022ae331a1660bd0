// One try of one request at one engine: the HTTP call, the event stream in its answer, and what
// went wrong, if anything. Lives on one loop.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "common/http/client.h"
#include "common/http/sse.h"
#include "services/inference_router/engine/chunk_reader.h"
#include "services/inference_router/engine/embedding_reader.h"

namespace tollgate::inference_router {

// What one read of the engine's socket brought.
struct EngineBatch {
  struct Chunk {
    size_t events_end = 0;  // its events are those from the previous chunk's end to here
    std::optional<EngineUsage> usage;
  };
  std::vector<inference::v1::Event> events;
  std::vector<Chunk> chunks;

  void Clear() {
    events.clear();
    chunks.clear();
  }
};

class EngineAttempt {
 public:
  EngineAttempt(Loop& loop, http::Client& client, const ChunkReader::Options& options);
  // A connection whose answer is all but read to its end is kept for the next request.
  ~EngineAttempt();

  // Sends the request and waits for the answer's head. False: see failure().
  Task<bool> Open(http::ClientRequest request);

  enum class Got {
    kMore,    // the batch holds what arrived; it may hold no event
    kEnd,     // the engine has ended well; the batch may hold the last events
    kFailed,  // the batch may hold events from before the failure; see failure()
  };
  Task<Got> Next(EngineBatch& batch);

  // Closes the connection at once. Open or Next, if suspended, come back with a failure.
  void Abort();

  const EngineFailure& failure() const { return failure_; }
  // The connection could not even be made.
  bool connect_failed() const { return connect_failed_; }

 private:
  Got Fail(EngineFailure failure);
  Task<Got> NextVectors(EngineBatch& batch);
  Got OnTransportError(const http::ClientError& error);
  Got OnBodyEnd();
  Got ReadEvents(std::string_view bytes, EngineBatch& batch);
  Got Take(ChunkReader::Status status, EngineBatch& batch);
  void LimitTheTail();

  Loop& loop_;
  std::unique_ptr<http::ClientCall> call_;
  http::SseReader sse_;
  ChunkReader reader_;
  std::optional<EmbeddingReader> vectors_;  // of an embedding request, instead of reader_
  int64_t window_;
  bool whole_ = false;
  bool at_end_marker_ = false;
  bool body_read_ = false;
  bool aborted_ = false;
  bool connect_failed_ = false;
  bool tail_over_ = false;
  Loop::TimerId tail_timer_ = 0;
  EngineFailure failure_;
};

}  // namespace tollgate::inference_router
