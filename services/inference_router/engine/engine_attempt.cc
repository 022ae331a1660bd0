#include "services/inference_router/engine/engine_attempt.h"

#include "common/base/clock.h"

namespace tollgate::inference_router {
namespace {

constexpr size_t kMaxErrorBody = 64 * 1024;
constexpr size_t kMaxWholeAnswer = 32 * 1024 * 1024;
// Of one event; an engine that sends more is broken (H75).
constexpr size_t kMaxEvent = 4 * 1024 * 1024;
// How long usage and end marker may take once every choice has its finish reason.
constexpr int64_t kTailMs = 5'000;
// How long the bytes after the end marker may take, for the connection to be used again.
constexpr int64_t kKeepAliveTailMs = 1'000;

// Reads what follows the end marker (the last chunk's framing, mostly), so that the connection can
// be used again. Nobody waits for it.
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
    vectors_.emplace(EmbeddingReader::Options{.inputs = options.choices, .window = options.window});
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

EngineAttempt::Got EngineAttempt::Fail(EngineFailure failure) {
  failure_ = std::move(failure);
  return Got::kFailed;
}

Task<bool> EngineAttempt::Open(http::ClientRequest request) {
  auto head = co_await call_->Send(std::move(request));
  if (!head.ok()) {
    const http::ClientError& error = head.error();
    connect_failed_ = error.kind == http::ClientError::Kind::kConnect;
    if (error.kind == http::ClientError::Kind::kTimeout) {
      Fail(Silent("no answer head: " + error.message));
    } else if (error.kind == http::ClientError::Kind::kProtocol) {
      Fail(Broken("bad answer head: " + error.message));
    } else {
      Fail(Unreachable(error.message));
    }
    co_return false;
  }
  if (head->status >= 200 && head->status < 300) {
    whole_ = head->header("content-type").find("json") != std::string_view::npos;
    co_return true;
  }
  const int status = head->status;
  const std::string retry_after(head->header("retry-after"));
  auto body = co_await call_->ReadAll(kMaxErrorBody);
  // A redirect or the like is no answer of an engine.
  Fail(status < 400 ? Broken("engine status " + std::to_string(status))
                    : ClassifyAnswer(status, body.ok() ? *body : "", retry_after, window_));
  co_return false;
}

Task<EngineAttempt::Got> EngineAttempt::NextVectors(EngineBatch& batch) {
  const auto read = co_await call_->ReadSome();
  if (!read.ok()) co_return OnTransportError(read.error());
  body_read_ = read->empty();
  const bool good = body_read_ ? vectors_->End() : vectors_->Feed(*read, batch.events);
  batch.chunks.push_back({batch.events.size(), vectors_->usage()});
  if (!good) co_return Fail(vectors_->failure());
  co_return body_read_ ? Got::kEnd : Got::kMore;
}

Task<EngineAttempt::Got> EngineAttempt::Next(EngineBatch& batch) {
  if (vectors_) co_return co_await NextVectors(batch);
  if (whole_) {
    auto body = co_await call_->ReadAll(kMaxWholeAnswer);
    if (!body.ok()) co_return OnTransportError(body.error());
    body_read_ = true;
    co_return Take(reader_.ReadWhole(*body, batch.events), batch);
  }
  auto read = co_await call_->ReadSome();
  if (!read.ok()) co_return OnTransportError(read.error());
  if (read->empty()) {
    body_read_ = true;
    co_return OnBodyEnd();
  }
  co_return ReadEvents(*read, batch);
}

EngineAttempt::Got EngineAttempt::OnTransportError(const http::ClientError& error) {
  // Everything that matters had come: only usage or the end marker are missing.
  if (reader_.finished() && (tail_over_ || !aborted_)) return Got::kEnd;
  if (error.kind == http::ClientError::Kind::kTimeout) return Fail(Silent(error.message));
  return Fail(Broken(error.message));
}

EngineAttempt::Got EngineAttempt::OnBodyEnd() {
  if (at_end_marker_ ? reader_.may_be_all() : reader_.finished()) return Got::kEnd;
  return Fail(Broken("the answer ended without a finish reason"));
}

EngineAttempt::Got EngineAttempt::ReadEvents(std::string_view bytes, EngineBatch& batch) {
  sse_.Feed(bytes);
  http::SseReader::Event event;
  for (;;) {
    switch (sse_.Next(&event)) {
      case http::SseReader::Status::kNeedMore:
        if (reader_.finished()) LimitTheTail();
        return Got::kMore;
      case http::SseReader::Status::kTooLarge:
        return Fail(Broken("an event is too large"));
      case http::SseReader::Status::kEvent:
        break;
    }
    const Got got = Take(reader_.Read(event.data, batch.events), batch);
    if (got != Got::kMore) return got;
  }
}

EngineAttempt::Got EngineAttempt::Take(ChunkReader::Status status, EngineBatch& batch) {
  batch.chunks.push_back({batch.events.size(), reader_.usage()});
  switch (status) {
    case ChunkReader::Status::kMore:
      return Got::kMore;
    case ChunkReader::Status::kDone:
      at_end_marker_ = true;
      return OnBodyEnd();
    case ChunkReader::Status::kError:
      break;
  }
  return Fail(reader_.failure());
}

void EngineAttempt::LimitTheTail() {
  if (tail_timer_ != 0) return;
  tail_timer_ = loop_.RunAfter(kTailMs, [this] {
    tail_over_ = true;
    Abort();
  });
}

}  // namespace tollgate::inference_router
