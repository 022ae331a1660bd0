#include "services/inference_router/engine/engine_attempt.h"

#include <algorithm>
#include <utility>

#include "common/base/clock.h"
#include "services/inference_router/engine/answer_start.h"

namespace tollgate::inference_router {
namespace {

constexpr size_t kMaxErrorBody = 64 * 1024;
// Size limit of one event (H75).
constexpr size_t kMaxEvent = 4 * 1024 * 1024;
// Limits on events and bytes in a row without output. Some engines send an event for each token of
// a tool call that they have not parsed yet.
constexpr size_t kMaxSilentEvents = 100'000;
constexpr size_t kMaxSilentBytes = 64 << 20;
// Bytes of an answer that are judged for being an event stream.
constexpr size_t kMaxJudgedBytes = 256;
// Time limit for usage and end marker once every choice has its finish reason, and for the text of
// an error.
constexpr int64_t kTailMs = 5'000;
// Time limit for the bytes after the end marker. Then the connection is closed instead of reused.
constexpr int64_t kKeepAliveTailMs = 1'000;

// Reads the bytes after the end marker (usually the framing of the last chunk), so that the
// connection can be reused. Runs in the background.
Task<void> ReadToEnd(Loop* loop, std::unique_ptr<http::ClientCall> call) {
  http::ClientCall* raw = call.get();
  const Loop::TimerId timer = loop->RunAfter(kKeepAliveTailMs, [raw] { raw->Abort(); });
  for (;;) {
    auto read = co_await call->ReadSome();
    if (!read.ok() || read->empty()) break;
  }
  loop->CancelTimer(timer);
}

}  // namespace

EngineAttempt::EngineAttempt(Loop& loop, http::Client& client, const ChunkReader::Options& options,
                             const AnswerTimes& times)
    : loop_(loop),
      call_(std::make_unique<http::ClientCall>(client)),
      sse_(kMaxEvent),
      reader_(options),
      max_answer_bytes_(static_cast<size_t>(options.max_answer_bytes)),
      window_(options.window),
      times_(times) {
  if (options.kind == inference::v1::REQUEST_KIND_EMBEDDING) {
    embeddings_.emplace(
        EmbeddingReader::Options{.inputs = options.choices, .window = options.window});
  }
}

EngineAttempt::~EngineAttempt() {
  loop_.CancelTimer(tail_timer_);
  loop_.CancelTimer(watch_timer_);
  if (at_end_marker_ && !body_read_ && !aborted_) {
    loop_.Spawn(ReadToEnd(&loop_, std::move(call_)));
  }
}

void EngineAttempt::Abort() {
  aborted_ = true;
  call_->Abort();
}

EngineAttempt::ReadResult EngineAttempt::Fail(EngineFailure failure) {
  failure_ = std::move(failure);
  return ReadResult::kFailed;
}

AnswerLimit EngineAttempt::TimeUp(int64_t now_us, int64_t* next_ms) const {
  const int64_t answer_left = times_.answer_ms - (now_us - started_us_) / 1000;
  if (answer_left <= 0) return AnswerLimit::kAnswerTime;
  const int64_t waited = waited_us_ + (waiting_since_us_ > 0 ? now_us - waiting_since_us_ : 0);
  const int64_t allowed_ms = any_output_ ? times_.silence_ms : times_.first_output_ms;
  const int64_t silence_left = allowed_ms - waited / 1000;
  if (silence_left <= 0) return any_output_ ? AnswerLimit::kSilence : AnswerLimit::kFirstOutput;
  *next_ms = std::min(answer_left, silence_left);
  return AnswerLimit::kNone;
}

void EngineAttempt::Watch() {
  int64_t next_ms = 0;
  watch_timer_ = 0;
  time_up_ = TimeUp(SystemClock::Get().MonotonicUs(), &next_ms);
  if (time_up_ != AnswerLimit::kNone) return Abort();
  watch_timer_ = loop_.RunAfter(next_ms, [this] { Watch(); });
}

// The wait of Open continues in the first Next.
void EngineAttempt::BeginWait() {
  if (waiting_since_us_ == 0) waiting_since_us_ = SystemClock::Get().MonotonicUs();
}

bool EngineAttempt::HasProgress(const EngineBatch& batch) {
  if (!batch.events.empty()) {
    silent_events_ = silent_bytes_ = 0;
    return true;
  }
  silent_events_ += batch.chunks.size();
  bool grown = false;
  for (const EngineBatch::Chunk& chunk : batch.chunks) {
    const int64_t tokens = chunk.usage ? chunk.usage->completion_tokens.value_or(0) : 0;
    if (tokens <= reported_tokens_) continue;
    reported_tokens_ = tokens;
    silent_events_ = silent_bytes_ = 0;
    grown = true;
  }
  return grown;
}

// Time between two calls of Next is not counted: the router then waits for its own client.
EngineAttempt::ReadResult EngineAttempt::EndWait(ReadResult result, const EngineBatch& batch) {
  const int64_t now_us = SystemClock::Get().MonotonicUs();
  waited_us_ += now_us - waiting_since_us_;
  waiting_since_us_ = 0;
  if (HasProgress(batch)) {
    waited_us_ = 0;
    // After the first output another time limit applies.
    if (!std::exchange(any_output_, true) && time_up_ == AnswerLimit::kNone) {
      loop_.CancelTimer(watch_timer_);
      Watch();
    }
  } else if (result == ReadResult::kMore &&
             (silent_events_ > kMaxSilentEvents || silent_bytes_ > kMaxSilentBytes)) {
    return Fail(OverLimit(AnswerLimit::kSilentEvents));
  }
  return result;
}

Task<bool> EngineAttempt::Open(http::ClientRequest request) {
  started_us_ = SystemClock::Get().MonotonicUs();
  request.head_timeout_ms = times_.first_output_ms;
  request.idle_timeout_ms = std::max(times_.first_output_ms, times_.silence_ms);
  BeginWait();
  Watch();
  auto head = co_await call_->Send(std::move(request));
  if (!head.ok()) {
    const http::ClientError& error = head.error();
    connect_failed_ = error.kind == http::ClientError::Kind::kConnect;
    if (time_up_ != AnswerLimit::kNone || error.kind == http::ClientError::Kind::kTimeout) {
      Fail(TimedOut(time_up_ == AnswerLimit::kAnswerTime ? time_up_ : AnswerLimit::kFirstOutput));
    } else if (error.kind == http::ClientError::Kind::kProtocol) {
      Fail(BrokenResponse("bad response head: " + error.message));
    } else {
      Fail(Unreachable(error.message));
    }
    co_return false;
  }
  if (head->status >= 200 && head->status < 300) {
    unstreamed_ = head->header("content-type").find("json") != std::string_view::npos;
    co_return true;
  }
  const int status = head->status;
  const std::string retry_after(head->header("retry-after"));
  StartTailTimer();  // the status says enough
  auto body = co_await call_->ReadAll(kMaxErrorBody);
  // Engines do not send redirects.
  Fail(status < 400 ? BrokenResponse("engine status " + std::to_string(status))
                    : ClassifyResponse(status, body.ok() ? *body : "", retry_after, window_));
  co_return false;
}

Task<EngineAttempt::ReadResult> EngineAttempt::NextEmbeddings(EngineBatch& batch) {
  const auto read = co_await call_->ReadSome();
  if (!read.ok()) co_return OnTransportError(read.error());
  silent_bytes_ += read->size();
  body_read_ = read->empty();
  const bool ok = body_read_ ? embeddings_->End() : embeddings_->Feed(*read, batch.events);
  batch.chunks.push_back({batch.events.size(), embeddings_->usage()});
  if (!ok) co_return Fail(embeddings_->failure());
  co_return body_read_ ? ReadResult::kEnd : ReadResult::kMore;
}

Task<EngineAttempt::ReadResult> EngineAttempt::Next(EngineBatch& batch) {
  BeginWait();
  if (embeddings_) co_return EndWait(co_await NextEmbeddings(batch), batch);
  if (unstreamed_) co_return EndWait(co_await ReadUnstreamed(batch), batch);
  const auto read = co_await call_->ReadSome();
  if (!read.ok()) co_return EndWait(OnTransportError(read.error()), batch);
  silent_bytes_ += read->size();
  body_read_ = read->empty();
  co_return EndWait(body_read_ ? OnBodyEnd() : ReadEvents(*read, batch), batch);
}

Task<EngineAttempt::ReadResult> EngineAttempt::ReadUnstreamed(EngineBatch& batch) {
  std::string body;
  bool begun = false;
  while (!body_read_) {
    const auto read = co_await call_->ReadSome();
    if (!read.ok()) co_return OnTransportError(read.error());
    body_read_ = read->empty();
    if (read->size() > max_answer_bytes_ - body.size()) {
      co_return Fail(OverLimit(AnswerLimit::kAnswerBytes));
    }
    body.append(*read);
    const size_t first = begun ? std::string_view::npos : read->find_first_not_of(" \t\r\n");
    if (first == std::string_view::npos) continue;
    begun = true;
    if ((*read)[first] != '{') co_return Fail(BrokenResponse("the response is not JSON"));
  }
  const ReadResult result = AddChunk(reader_.ReadWhole(body, batch.events), batch);
  batch.chunks.back().whole = true;
  co_return result;
}

EngineAttempt::ReadResult EngineAttempt::OnTransportError(const http::ClientError& error) {
  const bool time_up = time_up_ != AnswerLimit::kNone;
  // The answer is complete; only usage or the end marker is missing.
  if (reader_.finished() && (tail_over_ || time_up || !aborted_)) return ReadResult::kEnd;
  if (time_up) return Fail(TimedOut(time_up_));
  if (error.kind == http::ClientError::Kind::kTimeout) {
    return Fail(TimedOut(any_output_ ? AnswerLimit::kSilence : AnswerLimit::kFirstOutput));
  }
  return Fail(BrokenResponse(error.message));
}

EngineAttempt::ReadResult EngineAttempt::OnBodyEnd() {
  if (at_end_marker_ ? reader_.seen_choices_finished() : reader_.finished())
    return ReadResult::kEnd;
  return Fail(BrokenResponse("the response ended without a finish reason"));
}

bool EngineAttempt::MayBecomeStream(std::string_view bytes) {
  if (start_judged_) return true;
  start_.append(bytes.substr(0, kMaxJudgedBytes));
  start_judged_ = start_.size() >= kMaxJudgedBytes;
  return MayBeEventStream(start_);
}

EngineAttempt::ReadResult EngineAttempt::ReadEvents(std::string_view bytes, EngineBatch& batch) {
  if (!MayBecomeStream(bytes)) return Fail(BrokenResponse("the response is not an event stream"));
  sse_.Feed(bytes);
  http::SseReader::Event event;
  for (;;) {
    switch (sse_.Next(&event)) {
      case http::SseReader::Status::kNeedMore:
        if (reader_.finished()) StartTailTimer();
        return ReadResult::kMore;
      case http::SseReader::Status::kTooLarge:
        return Fail(BrokenResponse("an event is too large"));
      case http::SseReader::Status::kEvent:
        start_judged_ = true;
        break;
    }
    const ReadResult result = AddChunk(reader_.Read(event.data, batch.events), batch);
    if (result != ReadResult::kMore) return result;
  }
}

EngineAttempt::ReadResult EngineAttempt::AddChunk(ChunkReader::Status status, EngineBatch& batch) {
  batch.chunks.push_back({batch.events.size(), reader_.usage()});
  switch (status) {
    case ChunkReader::Status::kMore:
      return ReadResult::kMore;
    case ChunkReader::Status::kDone:
      at_end_marker_ = true;
      return OnBodyEnd();
    case ChunkReader::Status::kError:
      break;
  }
  return Fail(reader_.failure());
}

void EngineAttempt::StartTailTimer() {
  if (tail_timer_ != 0) return;
  tail_timer_ = loop_.RunAfter(kTailMs, [this] {
    tail_over_ = true;
    Abort();
  });
}

}  // namespace tollgate::inference_router
