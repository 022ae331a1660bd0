// One attempt to run one request on one engine: the HTTP call, the events in its response, and the
// failure, if any. An engine may never end its answer, so bytes, events and time are bounded (H75).
// Lives on one loop.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "common/http/client.h"
#include "common/http/sse.h"
#include "services/inference_router/engine/chunk_reader.h"
#include "services/inference_router/engine/embedding_reader.h"

namespace tollgate::inference_router {

// The events of one read of the engine's socket.
struct EngineBatch {
  struct Chunk {
    size_t events_end = 0;  // one past its last event; it starts where the previous chunk ends
    std::optional<EngineUsage> usage;
    bool whole = false;  // the complete answer of an engine that did not stream
  };
  std::vector<inference::v1::Event> events;
  std::vector<Chunk> chunks;

  void Clear() {
    events.clear();
    chunks.clear();
  }
};

// Time limits of an engine, in milliseconds. Output is text, reasoning, a tool call, a vector, or a
// completion count that has grown. Comments, empty events and incomplete events are not output.
struct AnswerTimes {
  int64_t first_output_ms = 600'000;  // from the start of the call
  int64_t silence_ms = 600'000;       // between outputs, while the router waits for the engine
  int64_t answer_ms = 3'600'000;      // the whole answer
};

class EngineAttempt {
 public:
  EngineAttempt(Loop& loop, http::Client& client, const ChunkReader::Options& options,
                const AnswerTimes& times);
  // After the end marker, reads the rest of the body in the background, so that the connection can
  // be reused.
  ~EngineAttempt();

  // Sends the request and waits for the response head. Sets the request's timeouts. Returns false
  // on a failure; see failure().
  Task<bool> Open(http::ClientRequest request);

  enum class ReadResult {
    kMore,    // the batch holds the events received, possibly none
    kEnd,     // the response is complete; the batch may hold the last events
    kFailed,  // the batch may hold events received before the failure; see failure()
  };
  Task<ReadResult> Next(EngineBatch& batch);

  // Closes the connection immediately. A suspended Open or Next returns a failure.
  void Abort();

  const EngineFailure& failure() const { return failure_; }
  // Whether no connection could be opened.
  bool connect_failed() const { return connect_failed_; }
  // Whether the whole request was sent, so that the engine may be working on it.
  bool sent() const { return call_->sent(); }
  bool aborted() const { return aborted_; }

 private:
  ReadResult Fail(EngineFailure failure);
  Task<ReadResult> NextEmbeddings(EngineBatch& batch);
  Task<ReadResult> ReadUnstreamed(EngineBatch& batch);
  ReadResult OnTransportError(const http::ClientError& error);
  ReadResult OnBodyEnd();
  ReadResult ReadEvents(std::string_view bytes, EngineBatch& batch);
  // Whether an answer that has no event yet may still get one.
  bool MayBecomeStream(std::string_view bytes);
  ReadResult AddChunk(ChunkReader::Status status, EngineBatch& batch);
  void StartTailTimer();
  // Ends the call when its time is up. Runs at most once per limit, not per read.
  void Watch();
  AnswerLimit TimeUp(int64_t now_us, int64_t* next_ms) const;
  void BeginWait();
  ReadResult EndWait(ReadResult result, const EngineBatch& batch);
  bool HasProgress(const EngineBatch& batch);

  Loop& loop_;
  std::unique_ptr<http::ClientCall> call_;
  http::SseReader sse_;
  ChunkReader reader_;
  std::optional<EmbeddingReader> embeddings_;  // used for embedding requests instead of reader_
  const size_t max_answer_bytes_;
  int64_t window_;
  const AnswerTimes times_;
  int64_t started_us_ = 0;
  int64_t waiting_since_us_ = 0;  // 0: not waiting for the engine
  int64_t waited_us_ = 0;         // since the last output, in earlier waits
  bool any_output_ = false;
  int64_t reported_tokens_ = 0;  // the largest completion count so far
  // Counted since the last output.
  size_t silent_events_ = 0;
  size_t silent_bytes_ = 0;
  AnswerLimit time_up_ = AnswerLimit::kNone;
  Loop::TimerId watch_timer_ = 0;
  bool unstreamed_ = false;  // the engine sends one JSON response
  std::string start_;        // what has arrived before the first event, up to a limit
  bool start_judged_ = false;
  bool at_end_marker_ = false;
  bool body_read_ = false;
  bool aborted_ = false;
  bool connect_failed_ = false;
  bool tail_over_ = false;
  Loop::TimerId tail_timer_ = 0;
  EngineFailure failure_;
};

}  // namespace tollgate::inference_router
