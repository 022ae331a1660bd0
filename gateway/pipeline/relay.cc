#include "gateway/pipeline/relay.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/http/sse.h"
#include "common/observability/log.h"
#include "common/rpc/error_detail.h"
#include "common/rpc/link_protocol.h"
#include "gateway/pipeline/authorize.h"
#include "gateway/pipeline/debug_header.h"
#include "gateway/pipeline/dispatch.h"
#include "gateway/pipeline/fall_back.h"
#include "gateway/pipeline/idempotency.h"
#include "gateway/pipeline/move.h"
#include "gateway/pipeline/overflow.h"
#include "gateway/pipeline/refusals.h"
#include "gateway/pipeline/refuse.h"
#include "gateway/pipeline/respond.h"
#include "gateway/pipeline/stream_writer.h"
#include "gateway/pipeline/trace_request.h"

namespace tollgate::gateway {

namespace {

namespace pb = inference::v1;

// Stopping routers that one request may meet, for example during a rolling update. More are
// unlikely.
constexpr int kMostDeclines = 3;

// State of the generation received so far.
struct Progress {
  bool started = false;
  bool any_delta = false;
  int64_t deltas = 0;
  bool ended = false;
  bool released = false;
  // How many stopping routers refused the request.
  int declined = 0;
  pb::End end;
  // Why the generation failed.
  std::optional<Error> error;
  // The generation that a client disconnect cancels; null: none.
  std::shared_ptr<Generation*> running;

  // The router left the hold open for this gateway, so another model may be tried.
  bool hold_kept() const { return error && end.hold_kept() && !started && !any_delta; }
  // The router has released the hold, or will release it.
  bool released_by_router() const {
    return ended && end.has_error() && !end.has_usage() && !end.hold_kept();
  }
  // No part of an answer has arrived. A caller that leaves now may have left before an engine took
  // the request.
  bool nothing_came() const { return !started && !any_delta && !ended && !error; }
};

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
    if (context.lease.held()) context.limit_headers.clear();
    co_await context.lease.Refund();
  } else if (progress.ended && progress.end.has_usage()) {
    const auto& usage = progress.end.usage();
    context.worker.metrics.CountTokens(usage);
    CountPaid(context);
    co_await context.lease.Finish(usage.prompt_tokens() + usage.completion_tokens());
  } else {
    // The answer was cut off: charge what is known.
    co_await context.lease.Finish(context.bounds.prompt_estimate + progress.deltas);
  }
  context.local_slot = LocalSlot();
}

// The caller gets an error and no output, so nothing may be charged, whatever the router does
// (decision 52).
void MakeFree(RequestContext& context, const Progress& progress) {
  CountRefusal(context, *progress.error);
  if (!progress.released_by_router()) context.hold.Refuse(progress.error->ToString());
}

// Handles a lost router. Returns true if another router has the request now; what the first one
// sent is discarded.
Task<bool> TryElsewhere(RequestContext& context, Progress& progress, const Error& error) {
  if (error.id != ErrorId::kServiceUnavailable) co_return false;
  // Parts of the stream may have reached the caller.
  if (context.canonical.stream && (progress.started || progress.any_delta)) co_return false;
  *progress.running = nullptr;
  if (!co_await MoveToAnotherRouter(context)) co_return false;
  *progress.running = context.generation.get();
  progress.started = progress.any_delta = false;
  progress.deltas = 0;
  co_return true;
}

// Handles a stopping router that refused the request before it ran, which the gateway learns only
// after sending it. Returns true if the request was sent to another router with the same hold.
bool SendToAnother(RequestContext& context, Progress& progress,
                   const Result<std::vector<pb::Event>>& batch) {
  if (!batch || batch->size() != 1 || !batch->front().has_end()) return false;
  const pb::End& end = batch->front().end();
  if (!end.not_run() || end.error().internal() != kLinkRefusal) return false;
  if (context.movable == nullptr || progress.declined == kMostDeclines) return false;
  ++progress.declined;
  *progress.running = nullptr;
  SendAgain(context);
  *progress.running = context.generation.get();
  return true;
}

// Handles a router without a lease that covers the request, which has not run. Returns true if the
// request was sent again with a hold, false if it fails with progress.error or the caller has left.
Task<bool> SendWithHold(RequestContext& context, Progress& progress) {
  Worker& worker = context.worker;
  worker.leased.OnNoLease(context.key->workspace_id(), worker.clock.MonotonicUs());
  context.hold.Disarm();
  *progress.running = nullptr;
  Result<void> authorized = co_await AuthorizeAtLedger(context);
  if (!authorized) {
    progress.error = authorized.error();
    co_return false;
  }
  if (context.exchange.disconnected()) {
    context.hold.Release("the caller left before a router had the request");
    co_return false;
  }
  SendAgain(context);
  *progress.running = context.generation.get();
  co_return true;
}

bool HasNoLease(const RequestContext& context, const Result<std::vector<pb::Event>>& batch) {
  return context.admitted_by_router && batch && batch->size() == 1 && batch->front().has_end() &&
         batch->front().end().no_lease() && context.movable != nullptr;
}

// Frees the kept copy, because the request is not sent again.
void ForgetRequest(RequestContext& context) {
  context.movable.reset();
  context.kept_memory.Shrink(0);
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

Task<void> RelayBody(RequestContext& context, Progress& progress) {
  auto encoder = context.surface.MakeBodyEncoder(context.canonical, MakeResponseStamp(context));
  int64_t collected_bytes = 0;
  while (!progress.ended && !progress.error) {
    auto batch = co_await context.generation->Next();
    if (context.exchange.disconnected()) co_return;
    if (SendToAnother(context, progress, batch)) continue;
    if (HasNoLease(context, batch)) {
      if (co_await SendWithHold(context, progress)) continue;
      if (context.exchange.disconnected()) co_return;
      break;
    }
    if (!batch) {
      if (co_await TryElsewhere(context, progress, batch.error())) {
        encoder = context.surface.MakeBodyEncoder(context.canonical, MakeResponseStamp(context));
        collected_bytes = 0;
        continue;
      }
      progress.error = std::move(batch.error());
      break;
    }
    for (const pb::Event& event : *batch) {
      RecordChoice(context, event);
      if (event.has_started()) progress.started = true;
      if (event.has_delta()) {
        RecordDelta(context, event.delta(), progress);
        collected_bytes += static_cast<int64_t>(event.delta().ByteSizeLong());
        if (collected_bytes > context.worker.options.max_collected_bytes) {
          context.generation->Cancel();
          progress.error = Error{ErrorId::kUpstreamError};
          progress.error->internal = "the answer is above max_collected_bytes";
          break;
        }
        encoder->OnDelta(event.delta());
      }
      if (event.has_end()) RecordEnd(context, event.end(), progress);
    }
    // Keeps a small request until its answer has ended, because the answer can be lost with its
    // router and nothing was sent yet. Large requests are kept only for another model.
    if (!progress.hold_kept() && context.kept_memory.bytes() > 0) ForgetRequest(context);
  }
  if (progress.hold_kept()) co_return;
  ForgetRequest(context);
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

Task<void> RelayStream(RequestContext& context, Progress& progress) {
  const auto encoder =
      context.surface.MakeStreamEncoder(context.canonical, MakeResponseStamp(context));
  const auto writer = std::make_shared<StreamWriter>(
      context.exchange, *encoder, context.worker.options.keep_alive_ms, AnswerHeaders(context));
  writer->Open();
  bool connected = true;
  bool told = false;
  while (connected && !progress.ended && !progress.error) {
    writer->BeginWait();
    auto batch = co_await context.generation->Next();
    co_await writer->EndWait();
    connected = !context.exchange.disconnected();
    if (!connected) break;
    if (SendToAnother(context, progress, batch)) continue;
    const bool no_lease = HasNoLease(context, batch);
    if (no_lease && co_await SendWithHold(context, progress)) continue;
    connected = !context.exchange.disconnected();
    if (!connected) break;
    if (!batch && co_await TryElsewhere(context, progress, batch.error())) continue;
    std::string out;
    if (no_lease) {
      // progress.error is set: billing refused the hold.
    } else if (batch) {
      out = Encode(context, *batch, *encoder, progress);
    } else {
      progress.error = std::move(batch.error());
    }
    if (!progress.hold_kept()) ForgetRequest(context);
    if (progress.error) {
      // Nothing was sent and no output arrived, so the error can still set the status.
      if (!writer->begun() && !progress.any_delta) break;
      encoder->OnError(*progress.error, out);
    }
    // Limits and credit are released before the client sees the end of the stream.
    if (progress.ended || progress.error) co_await Release(context, progress);
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

Task<void> RelayOne(RequestContext& context, Progress& progress) {
  if (context.canonical.stream) co_return co_await RelayStream(context, progress);
  co_await RelayBody(context, progress);
  if (progress.released || progress.hold_kept()) co_return;
  if (progress.nothing_came()) CountLeave(context, context.generation->sent());
  co_await Release(context, progress);
  context.worker.metrics.CountClientDisconnect();
}

// Handles a model that failed while the hold was left open. Returns true if another model has the
// request. Otherwise the request is over.
Task<bool> TryAnotherModel(RequestContext& context, Progress& progress) {
  *progress.running = nullptr;
  const bool goes_on = !context.exchange.disconnected() && context.movable != nullptr &&
                       co_await FallBack(context, *progress.error);
  if (goes_on) {
    SendAgain(context);
    co_return true;
  }
  if (!context.exchange.disconnected()) {
    co_await RefuseAnswer(context, progress);
    co_return false;
  }
  // The guards of the context release what the request holds.
  context.worker.metrics.CountClientDisconnect();
  co_await Release(context, progress);
  co_return false;
}

}  // namespace

Task<void> Relay(RequestContext& context) {
  // The disconnect callback can run at any time, even after the generation was destroyed.
  const auto running = std::make_shared<Generation*>(nullptr);
  context.exchange.OnDisconnect([running] {
    if (*running != nullptr) (*running)->Cancel();
  });
  for (bool again = true; again;) {
    Progress progress;
    progress.running = running;
    *running = context.generation.get();
    co_await RelayOne(context, progress);
    again =
        !progress.released && progress.hold_kept() && co_await TryAnotherModel(context, progress);
  }
  *running = nullptr;
}

}  // namespace tollgate::gateway
