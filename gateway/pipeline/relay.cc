#include <utility>

#include "common/observability/log.h"
#include "common/rpc/error_detail.h"
#include "gateway/envelopes/envelope.h"
#include "gateway/pipeline/limit_headers.h"
#include "gateway/pipeline/stages.h"
#include "gateway/pipeline/stream_writer.h"

namespace tollgate::gateway {

namespace {

namespace pb = inference::v1;

// What has come of the generation so far.
struct Progress {
  bool started = false;
  bool any_delta = false;
  int64_t deltas = 0;
  bool ended = false;
  bool concluded = false;
  pb::End end;
  // Why it failed; empty while it has not.
  std::optional<Error> error;
};

void NoteDelta(RequestContext& context, Progress& progress) {
  ++progress.deltas;
  if (progress.any_delta) return;
  progress.any_delta = true;
  const int64_t waited_us = context.worker.clock.MonotonicUs() - context.arrived_us;
  context.worker.metrics.ObserveFirstToken(static_cast<double>(waited_us) / 1e6);
}

void NoteEnd(RequestContext& context, const pb::End& end, Progress& progress) {
  progress.ended = true;
  progress.end = end;
  if (!end.has_error()) return;
  progress.error = rpc::FromDetail(end.error());
  NameFieldAtFault(context.canonical, *progress.error);
}

// Gives back what the request has taken, once. The money is the router's affair as soon as it has
// heard of the request.
Task<void> Conclude(RequestContext& context, Progress& progress) {
  if (std::exchange(progress.concluded, true)) co_return;
  if (context.generation->sent()) context.hold.Disarm();
  const bool refused = progress.error && !progress.started;
  if (refused || !context.generation->sent()) {
    // The limits' headers told of a request that counts; it does not.
    if (context.lease.held()) context.limit_headers.clear();
    co_await context.lease.Refund();
  } else if (progress.ended && progress.end.has_usage()) {
    const auto& usage = progress.end.usage();
    context.worker.metrics.CountTokens(usage);
    co_await context.lease.Finish(usage.prompt_tokens() + usage.completion_tokens());
  } else {
    // Cut off: as much as is known of it.
    co_await context.lease.Finish(context.bounds.prompt_estimate + progress.deltas);
  }
  context.local_slot = LocalSlot();
}

// A failure after the status 200 has gone out.
void CountBroken(RequestContext& context, const Error& error) {
  log::Warn("stream broke", {{"x_request_id", context.exchange.request().x_request_id},
                             {"endpoint", context.endpoint.name},
                             {"error", error.ToString()}});
  context.worker.metrics.CountRequest(context.endpoint.name, 200, error.row().code);
}

Task<void> RelayFolded(RequestContext& context, Progress& progress) {
  const auto folded = context.surface.MakeFoldedAnswer(context.canonical, MakeStamp(context));
  while (!progress.ended && !progress.error) {
    auto batch = co_await context.generation->Next();
    if (context.exchange.disconnected()) co_return;
    if (!batch) {
      progress.error = std::move(batch.error());
      break;
    }
    for (const pb::Event& event : *batch) {
      if (event.has_started()) progress.started = true;
      if (event.has_delta()) {
        NoteDelta(context, progress);
        folded->OnDelta(event.delta());
      }
      if (event.has_end()) NoteEnd(context, event.end(), progress);
    }
  }
  co_await Conclude(context, progress);
  if (progress.error) co_return co_await Refuse(context, *progress.error);
  co_await SendJson(context, folded->Finish(progress.end));
}

// The bytes for one batch. Events that came together leave together.
std::string Encode(RequestContext& context, const std::vector<pb::Event>& batch,
                   StreamEncoder& encoder, Progress& progress) {
  std::string out;
  out.reserve(256 * batch.size());  // a chunk's frame and a token or two
  for (const pb::Event& event : batch) {
    if (event.has_delta()) {
      NoteDelta(context, progress);
      encoder.OnDelta(event.delta(), out);
    } else if (event.has_started()) {
      progress.started = true;
      encoder.OnStarted(event.started(), out);
    } else if (event.has_end()) {
      NoteEnd(context, event.end(), progress);
      if (!progress.error) encoder.OnEnd(event.end(), out);
    }
  }
  return out;
}

Task<void> RelayStream(RequestContext& context, Progress& progress) {
  const auto encoder = context.surface.MakeStreamEncoder(context.canonical, MakeStamp(context));
  const auto writer = std::make_shared<StreamWriter>(
      context.exchange, *encoder, context.worker.options.keep_alive_ms, context.limit_headers);
  writer->Open();
  bool here = true;
  while (here && !progress.ended && !progress.error) {
    writer->BeginWait();
    auto batch = co_await context.generation->Next();
    co_await writer->EndWait();
    here = !context.exchange.disconnected();
    if (!here) break;
    std::string out;
    if (batch) {
      out = Encode(context, *batch, *encoder, progress);
    } else {
      progress.error = std::move(batch.error());
    }
    if (progress.error) {
      // Nothing has gone out and nothing was generated: the real status can still be told.
      if (!writer->begun() && !progress.any_delta) break;
      encoder->OnError(*progress.error, out);
    }
    // The limits and the credit are free before the caller hears that it is over.
    if (progress.ended || progress.error) co_await Conclude(context, progress);
    if (!out.empty()) here = co_await writer->Write(std::move(out));
  }
  writer->Close();
  if (!here) {
    context.generation->Cancel();
    if (!progress.concluded) context.worker.metrics.CountClientGone();
    co_await Conclude(context, progress);
  } else if (progress.error && !writer->begun()) {
    co_await Conclude(context, progress);
    co_await Refuse(context, *progress.error);
  } else {
    if (progress.error) {
      CountBroken(context, *progress.error);
    } else {
      context.worker.metrics.CountRequest(context.endpoint.name, 200, "");
    }
    co_await context.exchange.EndStream();
  }
}

}  // namespace

Task<void> Relay(RequestContext& context) {
  // The callback may come at any later time; it must not find a generation that is gone.
  const auto running = std::make_shared<Generation*>(context.generation.get());
  context.exchange.OnDisconnect([running] {
    if (*running != nullptr) (*running)->Cancel();
  });
  Progress progress;
  if (context.canonical.stream) {
    co_await RelayStream(context, progress);
  } else {
    co_await RelayFolded(context, progress);
    if (!progress.concluded) {
      co_await Conclude(context, progress);
      context.worker.metrics.CountClientGone();
    }
  }
  *running = nullptr;
}

}  // namespace tollgate::gateway
