#include "gateway/pipeline/run.h"

#include "common/base/try.h"
#include "gateway/pipeline/admission/fall_back.h"
#include "gateway/pipeline/answer/answer_without_engine.h"
#include "gateway/pipeline/answer/dispatch.h"
#include "gateway/pipeline/answer/idempotency.h"
#include "gateway/pipeline/answer/refuse.h"
#include "gateway/pipeline/answer/relay.h"
#include "gateway/pipeline/answer/trace_request.h"
#include "gateway/pipeline/checks/authenticate.h"
#include "gateway/pipeline/checks/candidates.h"
#include "gateway/pipeline/checks/decode_body.h"
#include "gateway/pipeline/parse.h"

namespace tollgate::gateway {

// Each stage reads the context, adds to it, and fails with the error that the client gets.
// Everything a stage takes (lease, hold) is a guard in the context, so every early return releases
// it.

Task<Result<void>> Validate(RequestContext& context) {
  CO_TRY(co_await Authenticate(context));
  if (IsCoded(context.exchange.request())) {
    CO_TRY(co_await DecodeBody(context));
  }
  if (IsParsedBesideLoop(context)) {
    CO_TRY(co_await ParseBesideLoop(context));
  } else if (auto done = Parse(context); !done) {
    co_return done;
  }
  co_return FindCandidates(context);
}

Task<void> RunInference(Worker& worker, const Surface& surface, Exchange& exchange,
                        const Endpoint& endpoint) {
  RequestContext context(worker, exchange, endpoint, surface);
  Result<void> stage = co_await Validate(context);
  if (stage) stage = ReadIdempotencyKey(context);
  if (stage && !exchange.disconnected()) stage = co_await AdmitAndAuthorize(context);
  if (!co_await ContinueOrRefuse(context, stage)) co_return;
  if (context.repeats_answer) co_return co_await RepeatAnswer(context);
  if (context.canonical.max_tokens == 0) co_return co_await AnswerWithoutEngine(context);
  if (context.bounds.needs_count) {
    stage = co_await CheckPromptFits(context);
    if (!co_await ContinueOrRefuse(context, stage)) co_return;
  }
  BeginRoute(context);
  Dispatch(context);
  co_await Relay(context);
}

}  // namespace tollgate::gateway
