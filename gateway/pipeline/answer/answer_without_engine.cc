#include "gateway/pipeline/answer/answer_without_engine.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gateway/pipeline/admission/count_prompt.h"
#include "gateway/pipeline/admission/overflow.h"
#include "gateway/pipeline/answer/refuse.h"
#include "gateway/pipeline/answer/respond.h"
#include "gateway/pipeline/answer/stream_writer.h"

namespace tollgate::gateway {

namespace {

namespace pb = inference::v1;

// Each choice is finished and has no output.
std::vector<pb::Delta> EmptyChoices(CanonicalRequest& canonical) {
  std::vector<pb::Delta> deltas(static_cast<size_t>(canonical.choices));
  for (size_t i = 0; i < deltas.size(); ++i) {
    deltas[i].set_choice(static_cast<int32_t>(i));
    if (i < canonical.echo_json.size()) {
      deltas[i].set_content_json(std::move(canonical.echo_json[i]));
    }
    deltas[i].set_finish_reason(pb::FINISH_REASON_LENGTH);
  }
  return deltas;
}

}  // namespace

Task<void> AnswerWithoutEngine(RequestContext& context) {
  const PromptCount prompt = co_await CountPrompt(context);
  if (auto overflow = FindOverflow(context, prompt)) {
    co_return co_await ReleaseAndRefuse(context, std::move(*overflow));
  }
  co_await context.slot.Finish(0);
  context.local_slot = LocalSlot();
  pb::Started started;
  started.set_prompt_tokens(prompt.tokens);
  pb::End end;
  end.mutable_usage()->set_prompt_tokens(prompt.tokens);
  end.set_estimated(prompt.estimated);
  const std::vector<pb::Delta> deltas = EmptyChoices(context.canonical);
  if (context.canonical.stream) {
    const auto encoder =
        context.surface.MakeStreamEncoder(context.canonical, MakeResponseStamp(context));
    std::string out;
    encoder->OnStarted(started, out);
    for (const pb::Delta& delta : deltas) encoder->OnDelta(delta, out);
    encoder->OnEnd(end, out);
    context.worker.metrics.CountRequest(context.endpoint.name, 200, "");
    const auto writer =
        std::make_shared<StreamWriter>(context.exchange, *encoder, 0, AnswerHeaders(context));
    if (co_await writer->Write(std::move(out))) co_await context.exchange.EndStream();
    co_return;
  }
  const auto encoder =
      context.surface.MakeBodyEncoder(context.canonical, MakeResponseStamp(context));
  for (const pb::Delta& delta : deltas) encoder->OnDelta(delta);
  co_await SendJson(context, encoder->Finish(end));
}

}  // namespace tollgate::gateway
