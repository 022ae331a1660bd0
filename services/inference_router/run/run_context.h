// The data shared by the parts of a RequestRun: the services of its loop, and the request.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "common/base/clock.h"
#include "common/http/client.h"
#include "common/observability/log.h"
#include "services/inference_router/balancer/routing_table.h"
#include "services/inference_router/count/token_counter.h"
#include "services/inference_router/engine/chunk_reader.h"
#include "services/inference_router/engine/engine_text.h"
#include "services/inference_router/rpc/event_sink.h"
#include "services/inference_router/run/credit_leases.h"
#include "services/inference_router/run/hold_keeper.h"
#include "services/inference_router/run/router_metrics.h"
#include "services/inference_router/run/run_trace.h"
#include "services/inference_router/settlement/settler.h"

namespace tollgate::inference_router {

struct RunSettings {
  // Time without output after which an engine's answer is ended; see AnswerTimes.
  int64_t idle_timeout_ms = 600'000;
  // Time until the first output; 0: idle_timeout_ms.
  int64_t first_output_timeout_ms = 0;
  int64_t answer_timeout_ms = 3'600'000;
  // Limit on the bytes of one answer; see ChunkReader::Options.
  int64_t max_answer_bytes = ChunkReader::kMaxAnswerBytes;
  // Limit on the output tokens of an answer that may be requested without streaming (decision 42);
  // negative: none may.
  int64_t unstreamed_max_tokens = 2048;
  // The longest wait for an answer that is requested without streaming (ADR 0058).
  int64_t unstreamed_answer_ms = 300'000;
  // Duration of failing health checks after which a request that waits for a whole answer gives up
  // its engine. A busy engine may miss some checks.
  int64_t lost_engine_ms = 20'000;
  // Keys the salts of prefix caches; may be empty.
  std::string cache_salt_key;
  // How long to wait for the extension of a used-up hold.
  Patience patience;
  // How long a request waits for a place when all engines of its pool are full; 0: it is refused
  // immediately.
  int64_t queue_ms = 0;
  // Engines tried before the first byte of output.
  int max_tries = 2;
  // Time without any output after which a second engine is asked, too (hedge.h); 0: never.
  int64_t hedge_after_ms = 0;
};

// The services of one loop. Outlives its runs.
struct RunHost {
  Loop& loop;
  Clock& clock;
  http::Client& http;
  MeteringClient& metering;
  Journal& journal;
  Settler& settler;
  RouterMetrics& metrics;
  RunSettings settings;
  // Breaks ties between engines (SelectEngine).
  uint64_t rotation = 0;
  TokenCounter* counter = nullptr;
  CreditLeases* leases = nullptr;
  Outbox* admissions = nullptr;
};

// One request. Owned by its RequestRun; its EngineRun and its Settlement refer to it.
struct RunContext {
  RunHost& host;
  // Null before the first catalog snapshot.
  const std::shared_ptr<const RoutingTable> table;
  inference::v1::GenerateRequest request;
  const std::shared_ptr<EventSink> sink;
  const int64_t arrived_us;
  // Points into the table; null if the model has no route.
  const Route* route = nullptr;
  // Engines that this run has asked, including the current one.
  int tries = 0;
  // Input for the choice of an engine.
  PrefixChain prefix = {};
  EngineNeed need = {};
  // The meter of the current engine. Its choice is kept only if the request asks for it
  // (explain_choice).
  WorkMeter work = {};
  std::optional<inference::v1::EngineChoice> choice = {};
  // Time that the request waited for its first engine, in microseconds.
  int64_t waited_us = 0;
  TextFitter fitter = {};
  // Null if the journal has no slot. Passed to the settler when the settlement starts.
  JournalSlot* slot = nullptr;
  std::shared_ptr<HoldKeeper> hold;
  // How a request without a hold was admitted.
  std::optional<LeaseTicket> ticket = {};
  // Empty: the request is not traced.
  std::optional<RunTrace> trace = {};

  // The trace field for log lines about the request.
  log::Field TraceField() const {
    return trace ? log::Field("trace_id", trace->TraceIdHex()) : log::Field("", "");
  }
  // Upper bound of the tokens in choices that the engine generates but does not return (best_of).
  int64_t UnseenTokens() const;
  // Sets prefix and need. Requires a route.
  void SetNeed();
  // Sets choice if the request asks for it.
  void NoteChoice(const Selection& selection);
};

}  // namespace tollgate::inference_router
