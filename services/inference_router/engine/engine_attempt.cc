#include "services/inference_router/engine/engine_attempt.h"

#include "common/base/clock.h"

namespace tollgate::inference_router {
namespace {

constexpr size_t kMaxErrorBody = 64 * 1024;
constexpr size_t kMaxUnstreamedBody = 32 * 1024 * 1024;
// Size limit of one event (H75).
constexpr size_t kMaxEvent = 4 * 1024 * 1024;
// Time limit for usage and end marker once every choice has its finish reason.
constexpr int64_t kTailMs = 5'000;
// Time limit for the bytes after the end marker, before the connection is closed instead of reused.
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

EngineAttempt::EngineAttempt(Loop& loop, http::Client& client, const ChunkReader::Options& options)
    : loop_(loop),
      call_(std::make_unique<http::ClientCall>(client)),
      sse_(kMaxEvent),
      reader_(options),
      window_(options.window) {
  if (options.kind == inference::v1::REQUEST_KIND_EMBEDDING) {
    embeddings_.emplace(
        EmbeddingReader::Options{.inputs = options.choices, .window = options.window});
  }
}

EngineAttempt::~EngineAttempt() {
  loop_.CancelTimer(tail_timer_);
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

Task<bool> EngineAttempt::Open(http::ClientRequest request) {
  auto head = co_await call_->Send(std::move(request));
  if (!head.ok()) {
    const http::ClientError& error = head.error();
    connect_failed_ = error.kind == http::ClientError::Kind::kConnect;
    if (error.kind == http::ClientError::Kind::kTimeout) {
      Fail(TimedOut("no response head: " + error.message));
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
  auto body = co_await call_->ReadAll(kMaxErrorBody);
  // Engines do not redirect.
  Fail(status < 400 ? BrokenResponse("engine status " + std::to_string(status))
                    : ClassifyResponse(status, body.ok() ? *body : "", retry_after, window_));
  co_return false;
}

Task<EngineAttempt::ReadResult> EngineAttempt::NextEmbeddings(EngineBatch& batch) {
  const auto read = co_await call_->ReadSome();
  if (!read.ok()) co_return OnTransportError(read.error());
  body_read_ = read->empty();
  const bool ok = body_read_ ? embeddings_->End() : embeddings_->Feed(*read, batch.events);
  batch.chunks.push_back({batch.events.size(), embeddings_->usage()});
  if (!ok) co_return Fail(embeddings_->failure());
  co_return body_read_ ? ReadResult::kEnd : ReadResult::kMore;
}

Task<EngineAttempt::ReadResult> EngineAttempt::Next(EngineBatch& batch) {
  if (embeddings_) co_return co_await NextEmbeddings(batch);
  if (unstreamed_) {
    auto body = co_await call_->ReadAll(kMaxUnstreamedBody);
    if (!body.ok()) co_return OnTransportError(body.error());
    body_read_ = true;
    co_return AddChunk(reader_.ReadWhole(*body, batch.events), batch);
  }
  auto read = co_await call_->ReadSome();
  if (!read.ok()) co_return OnTransportError(read.error());
  if (read->empty()) {
    body_read_ = true;
    co_return OnBodyEnd();
  }
  co_return ReadEvents(*read, batch);
}

EngineAttempt::ReadResult EngineAttempt::OnTransportError(const http::ClientError& error) {
  // The answer is complete: only usage or the end marker is missing.
  if (reader_.finished() && (tail_over_ || !aborted_)) return ReadResult::kEnd;
  if (error.kind == http::ClientError::Kind::kTimeout) return Fail(TimedOut(error.message));
  return Fail(BrokenResponse(error.message));
}

EngineAttempt::ReadResult EngineAttempt::OnBodyEnd() {
  if (at_end_marker_ ? reader_.seen_choices_finished() : reader_.finished())
    return ReadResult::kEnd;
  return Fail(BrokenResponse("the response ended without a finish reason"));
}

EngineAttempt::ReadResult EngineAttempt::ReadEvents(std::string_view bytes, EngineBatch& batch) {
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
