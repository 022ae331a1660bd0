#include "gateway/pipeline/answer/relay.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/http/sse.h"
#include "common/observability/log.h"
#include "common/rpc/error_detail.h"
#include "gateway/pipeline/admission/overflow.h"
#include "gateway/pipeline/admission/refusals.h"
#include "gateway/pipeline/answer/debug_header.h"
#include "gateway/pipeline/answer/idempotency.h"
#include "gateway/pipeline/answer/refuse.h"
#include "gateway/pipeline/answer/respond.h"
#include "gateway/pipeline/answer/stream_writer.h"
#include "gateway/pipeline/answer/trace_request.h"
#include "gateway/pipeline/answer/tries.h"

namespace tollgate::gateway {

namespace {

namespace pb = inference::v1;
using Step = Tries::Step;

void RecordDelta(RequestContext& context, const pb::Delta& delta, Progress& progress) {
  ++progress.deltas;
  if (delta.finish_reason() != pb::FINISH_REASON_UNSPECIFIED) {
    RecordFinish(context, delta.finish_reason());
  }
  if (progress.any_delta) return;
  progress.any_delta = true;
  const int64_t now_us = context.worker.clock.MonotonicUs();
  if (context.trace != nullptr) context.trace->of(Stage::kStream).begin_us = now_us;
  const int64_t waited_us = now_us - context.arrived_us;
  context.worker.metrics.ObserveFirstToken(static_cast<double>(waited_us) / 1e6);
}

void RecordEnd(RequestContext& context, const pb::End& end, Progress& progress) {
  progress.ended = true;
  progress.end = end;
  RecordUsage(context, end);
  if (!end.has_error()) return;
  progress.error = rpc::FromDetail(end.error());
  SetOverflowParam(context.canonical, *progress.error);
}

// Releases what the request has taken; idempotent. Once the request was sent, the router settles
// the hold.
Task<void> Release(RequestContext& context, Progress& progress) {
  if (std::exchange(progress.released, true)) co_return;
  if (context.generation->sent() && !progress.hold_kept()) context.hold.HandOver();
  const bool refused = progress.error && !progress.started;
  if (refused || !context.generation->sent()) {
    // The rate-limit headers count this request, and the refund makes them wrong.
    if (context.slot.held()) context.limit_headers.clear();
    co_await context.slot.Refund();
  } else if (progress.ended && progress.end.has_usage()) {
    const auto& usage = progress.end.usage();
    context.worker.metrics.CountTokens(usage);
    CountPaid(context);
    co_await context.slot.Finish(usage.prompt_tokens() + usage.completion_tokens());
  } else {
    // The answer was cut off: charge what is known.
    co_await context.slot.Finish(context.bounds.prompt_estimate + progress.deltas);
  }
  context.local_slot = LocalSlot();
}

// The caller gets an error and no output, so nothing may be charged, whatever the router does
// (decision 52).
void MakeFree(RequestContext& context, const Progress& progress) {
  CountRefusal(context, *progress.error);
  if (!progress.released_by_router()) context.hold.Refuse(progress.error->ToString());
}

// Ends a request whose answer is an error, before any part of it was sent.
Task<void> RefuseAnswer(RequestContext& context, Progress& progress) {
  co_await Release(context, progress);
  MakeFree(context, progress);
  co_await Refuse(context, *progress.error);
}

// Records a failure after the status 200 was sent.
void RecordBrokenStream(RequestContext& context, const Error& error) {
  HttpRequest& request = context.exchange.mutable_request();
  log::Warn("stream failed", {{"x_request_id", request.x_request_id},
                              {"endpoint", context.endpoint.name},
                              {"error", error.ToString()},
                              TraceField(request)});
  NoteCaller(request, context.key->key_id(), context.key->workspace_id());
  NoteFailure(request, error);
  context.worker.metrics.CountRequest(context.endpoint.name, 200, error.row().code);
}

// Adds one batch to the body. Fails a generation that is too long to be collected.
void Collect(RequestContext& context, const std::vector<pb::Event>& batch, BodyEncoder& encoder,
             int64_t& collected_bytes, Progress& progress) {
  for (const pb::Event& event : batch) {
    RecordChoice(context, event);
    if (event.has_started()) progress.started = true;
    if (event.has_delta()) {
      RecordDelta(context, event.delta(), progress);
      collected_bytes += static_cast<int64_t>(event.delta().ByteSizeLong());
      if (collected_bytes > context.worker.options.max_collected_bytes) {
        context.generation->Cancel();
        progress.error = Error{ErrorId::kUpstreamError};
        progress.error->internal = "the answer is above max_collected_bytes";
        return;
      }
      encoder.OnDelta(event.delta());
    }
    if (event.has_end()) RecordEnd(context, event.end(), progress);
  }
}

Task<void> RelayBody(RequestContext& context, Tries& tries) {
  Progress& progress = tries.progress;
  auto encoder = context.surface.MakeBodyEncoder(context.canonical, MakeResponseStamp(context));
  int64_t collected_bytes = 0;
  while (!progress.over()) {
    const auto batch = co_await context.generation->Next();
    Step step = tries.Judge(batch);
    if (step == Step::kRetry) step = co_await tries.Retry(batch);
    if (step == Step::kLeft) co_return;
    if (step == Step::kAgain) {
      encoder = context.surface.MakeBodyEncoder(context.canonical, MakeResponseStamp(context));
      collected_bytes = 0;
      continue;
    }
    if (step == Step::kRelay) Collect(context, *batch, *encoder, collected_bytes, progress);
    tries.ForgetUnlessNeeded();
  }
  if (progress.hold_kept()) co_return;
  if (progress.error) co_return co_await RefuseAnswer(context, progress);
  co_await Release(context, progress);
  std::string body = encoder->Finish(progress.end);
  co_await KeepAnswer(context, body, progress.end.cut_by_credit());
  co_await SendJson(context, std::move(body), progress.end.cut_by_credit());
}

// Encodes one batch. Events that arrive together are written together.
std::string Encode(RequestContext& context, const std::vector<pb::Event>& batch,
                   StreamEncoder& encoder, Progress& progress) {
  std::string out;
  out.reserve(256 * batch.size());  // the envelope of a chunk and one or two tokens
  for (const pb::Event& event : batch) {
    RecordChoice(context, event);
    if (event.has_delta()) {
      RecordDelta(context, event.delta(), progress);
      encoder.OnDelta(event.delta(), out);
    } else if (event.has_started()) {
      progress.started = true;
      encoder.OnStarted(event.started(), out);
    } else if (event.has_end()) {
      RecordEnd(context, event.end(), progress);
      if (progress.error) continue;
      if (event.end().cut_by_credit()) {
        http::AppendSseComment(out, std::string(kCutByCreditHeader) + ": true");
      }
      encoder.OnEnd(event.end(), out);
    }
  }
  return out;
}

// Reports the engine's choice in a header, or in a comment before the answer once the status is
// sent.
void TellChoice(const RequestContext& context, StreamWriter& writer, bool& told, std::string& out) {
  if (std::exchange(told, true)) return;
  if (!writer.begun()) return writer.SetHeaders(AnswerHeaders(context));
  std::string comment;
  http::AppendSseComment(comment, std::string(kDebugHeader) + ": " + context.choice);
  out.insert(0, comment);
}

Task<void> RelayStream(RequestContext& context, Tries& tries) {
  Progress& progress = tries.progress;
  const auto encoder =
      context.surface.MakeStreamEncoder(context.canonical, MakeResponseStamp(context));
  const auto writer = std::make_shared<StreamWriter>(
      context.exchange, *encoder, context.worker.options.keep_alive_ms, AnswerHeaders(context));
  writer->Open();
  bool connected = true;
  bool told = false;
  while (connected && !progress.over()) {
    writer->BeginWait();
    const auto batch = co_await context.generation->Next();
    co_await writer->EndWait();
    Step step = tries.Judge(batch);
    if (step == Step::kRetry) step = co_await tries.Retry(batch);
    if (step == Step::kAgain) continue;
    connected = step != Step::kLeft;
    if (!connected) break;
    std::string out;
    if (step == Step::kRelay) out = Encode(context, *batch, *encoder, progress);
    tries.ForgetUnlessNeeded();
    if (progress.error) {
      // Nothing was sent and no output arrived, so the error can still set the status.
      if (!writer->begun() && !progress.any_delta) break;
      encoder->OnError(*progress.error, out);
    }
    // Limits and credit are released before the client sees the end of the stream.
    if (progress.over()) co_await Release(context, progress);
    if (out.empty()) continue;
    if (!context.choice.empty()) TellChoice(context, *writer, told, out);
    connected = co_await writer->Write(std::move(out));
  }
  writer->Close();
  if (connected && progress.hold_kept() && !writer->begun()) co_return;
  if (!connected) {
    context.generation->Cancel();
    if (!progress.released) context.worker.metrics.CountClientDisconnect();
    co_await Release(context, progress);
    // At most an error was on its way to the caller.
    if (progress.error && !progress.any_delta) MakeFree(context, progress);
    if (progress.nothing_came()) CountLeave(context, context.generation->sent());
  } else if (progress.error && !writer->begun()) {
    co_await RefuseAnswer(context, progress);
  } else {
    if (progress.error) {
      if (!progress.any_delta) MakeFree(context, progress);
      RecordBrokenStream(context, *progress.error);
    } else {
      context.worker.metrics.CountRequest(context.endpoint.name, 200, "");
    }
    co_await context.exchange.EndStream();
  }
}

// Relays the answer of one model. If it failed with the hold kept, nothing has ended and nothing
// was released.
Task<void> RelayOne(RequestContext& context, Tries& tries) {
  if (context.canonical.stream) co_return co_await RelayStream(context, tries);
  co_await RelayBody(context, tries);
  Progress& progress = tries.progress;
  if (progress.released || progress.hold_kept()) co_return;
  if (progress.nothing_came()) CountLeave(context, context.generation->sent());
  co_await Release(context, progress);
  context.worker.metrics.CountClientDisconnect();
}

}  // namespace

Task<void> Relay(RequestContext& context) {
  Tries tries(context);
  do {
    co_await RelayOne(context, tries);
    if (tries.progress.released) co_return;
  } while (co_await tries.RetryWithNextModel());
  if (!context.exchange.disconnected()) co_return co_await RefuseAnswer(context, tries.progress);
  // The guards of the context release what the request holds.
  context.worker.metrics.CountClientDisconnect();
  co_await Release(context, tries.progress);
}

}  // namespace tollgate::gateway
