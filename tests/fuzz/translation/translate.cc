#include "tests/fuzz/translation/translate.h"

#include <algorithm>
#include <memory>

#include "common/http/sse.h"
#include "services/inference_router/domain/token_meter.h"
#include "services/inference_router/engine/chunk_reader.h"

namespace tollgate::fuzz {
namespace {

using inference::v1::Event;
using inference_router::ChunkReader;
using inference_router::EngineFailure;
using inference_router::TokenMeter;

constexpr int64_t kPromptBound = 6000;

class Router {
 public:
  Router(const ChunkReader::Options& options, bool usage_per_choice)
      : reader_(options),
        meter_({options.choices, kPromptBound, usage_per_choice}),
        closed_(static_cast<size_t>(options.choices)) {}

  enum class Got { kMore, kEnd, kFailed };

  Got Bytes(std::string_view bytes) {
    sse_.Feed(bytes);
    http::SseReader::Event event;
    while (sse_.Next(&event) == http::SseReader::Status::kEvent) {
      const Got got = Take(reader_.Read(event.data, batch_));
      if (got != Got::kMore) return got;
    }
    return Got::kMore;
  }
  Got Whole(std::string_view body) { return Take(reader_.ReadWhole(body, batch_)); }
  // The connection has ended, or the end marker has come (EngineAttempt::OnBodyEnd).
  Got BodyEnd(bool at_marker) {
    return (at_marker ? reader_.seen_choices_finished() : reader_.finished()) ? Got::kEnd
                                                                              : Got::kFailed;
  }

  void Finish(Got got, Generation& out);

 private:
  // As Session::Measure and Session::Forward process one chunk.
  Got Take(ChunkReader::Status status) {
    for (const Event& event : batch_) meter_.OnDelta(event.delta());
    if (reader_.usage()) meter_.OnUsage(*reader_.usage());
    for (Event& event : batch_) {
      Start();
      events_.push_back(std::move(event));
    }
    batch_.clear();
    if (status == ChunkReader::Status::kMore) return Got::kMore;
    return status == ChunkReader::Status::kDone ? BodyEnd(true) : Got::kFailed;
  }
  void Start();

  http::SseReader sse_;
  ChunkReader reader_;
  TokenMeter meter_;
  std::vector<bool> closed_;
  std::vector<Event> batch_, events_;
};

void Router::Start() {
  if (!events_.empty()) return;
  inference::v1::Started& started = *events_.emplace_back().mutable_started();
  if (const auto& report = meter_.last_report()) {
    started.set_prompt_tokens(meter_.prompt_tokens());
    started.set_cached_tokens(
        std::clamp<int64_t>(report->cached_tokens, 0, started.prompt_tokens()));
    started.set_cache_write_tokens(std::clamp<int64_t>(
        report->cache_write_tokens, 0, started.prompt_tokens() - started.cached_tokens()));
  }
}

void Router::Finish(Got got, Generation& out) {
  if (got == Got::kFailed) {
    Error error = reader_.failure().error;
    out.error = std::move(error);
  } else {
    Start();
    *out.end.mutable_usage() = meter_.Measure().usage;
  }
  out.events = std::move(events_);
}

// The end of an answer that was cut by credit (Session::CloseChoices).
void CutByCredit(Random& random, int choices, Generation& out) {
  if (out.events.size() < 2) return;
  out.cut_by_credit = true;
  out.error.reset();
  out.events.resize(1 + random.Below(out.events.size()));
  std::vector<bool> closed(static_cast<size_t>(choices));
  for (const Event& event : out.events) {
    if (event.delta().finish_reason() != inference::v1::FINISH_REASON_UNSPECIFIED) {
      closed[static_cast<size_t>(event.delta().choice())] = true;
    }
  }
  for (int i = 0; i < choices; ++i) {
    if (closed[static_cast<size_t>(i)]) continue;
    inference::v1::Delta& delta = *out.events.emplace_back().mutable_delta();
    delta.set_choice(i);
    delta.set_finish_reason(inference::v1::FINISH_REASON_LENGTH);
  }
  out.end.Clear();
  out.end.mutable_usage()->set_prompt_tokens(7);
  out.end.mutable_usage()->set_completion_tokens(static_cast<int64_t>(out.events.size()));
  out.end.set_cut_by_credit(true);
}

}  // namespace

Generation Translate(Random& random, const EngineBytes& engine, inference::v1::RequestKind kind,
                     int choices, bool cut_by_credit) {
  ChunkReader::Options options;
  options.kind = kind;
  options.choices = choices;
  options.window = 100'000;
  Router router(options, engine.usage_per_choice);
  Router::Got got = Router::Got::kMore;
  if (engine.whole) {
    got = router.Whole(engine.bytes);
  } else {
    const size_t longest = random.Pick<size_t>({1, 7, 60, 1'000'000});
    for (size_t at = 0; at < engine.bytes.size() && got == Router::Got::kMore;) {
      const size_t size = std::min(random.Between(1, longest), engine.bytes.size() - at);
      // Each piece has its own buffer, as a socket read: no code may refer to it later.
      const std::unique_ptr<char[]> piece(new char[size]);
      std::copy_n(engine.bytes.data() + at, size, piece.get());
      got = router.Bytes({piece.get(), size});
      at += size;
    }
    if (got == Router::Got::kMore) got = router.BodyEnd(false);
  }
  Generation generation;
  router.Finish(got, generation);
  if (cut_by_credit) CutByCredit(random, choices, generation);
  return generation;
}

}  // namespace tollgate::fuzz
