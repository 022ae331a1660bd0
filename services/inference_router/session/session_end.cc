// How a session ends: the count, the settlement, and only then the word to the caller.
#include <algorithm>

#include "common/base/crypto.h"
#include "common/observability/log.h"
#include "common/rpc/error_detail.h"
#include "services/inference_router/engine/context_length.h"
#include "services/inference_router/session/session.h"

namespace tollgate::inference_router {

using inference::v1::Delta;
using inference::v1::End;

// The legal end of an answer whose money ran out (decisions 4).
Task<void> Session::CloseChoices() {
  for (size_t i = 0; i < closed_choices_.size(); ++i) {
    if (closed_choices_[i]) continue;
    inference::v1::Event event;
    Delta& delta = *event.mutable_delta();
    delta.set_choice(static_cast<int32_t>(i));
    delta.set_finish_reason(inference::v1::FINISH_REASON_LENGTH);
    if (!co_await sink_->Send(std::move(event))) co_return;
  }
}

Task<void> Session::Finish(Ended ended) {
  if (ended == Ended::kCut) {
    cut_ = true;
    host_.metrics.cut_by_credit.Increment();
    co_await CloseChoices();
  }
  // Who pays when something breaks: reliability.md 1.5.
  const bool charge = accepted_ && (ended != Ended::kFailed || meter_->anything_produced());
  if (charge) {
    co_await Settle(ended);
    co_return;
  }
  billing::v1::MeterOp op = hold_->NewOp();
  op.mutable_settle()->set_outcome(billing::v1::OUTCOME_FAILED_BEFORE_OUTPUT);
  op.mutable_settle()->set_engine_id(engine_id_);
  hold_->Close();
  co_await host_.settler.Release(std::move(op), slot_);
  if (ended != Ended::kFailed) co_return;
  if (failure_.error.tokens.prompt_is_lower_bound) co_await CountOverflow();
  co_await SendEnd(End(), &failure_.error);
}

// Engines may stop counting a prompt where it no longer fits. Agents shorten by what is too much,
// so they are told the whole (decisions 32).
Task<void> Session::CountOverflow() {
  const std::string& members = request_.members_json();
  // What tokenizers see is not all of a prompt with media.
  for (const char* medium : {R"("image_url")", R"("input_audio")", R"("video_url")"}) {
    if (members.find(medium) != std::string::npos) co_return;
  }
  inference::v1::CountTokensRequest request;
  request.set_x_request_id(request_.x_request_id());
  request.set_model(request_.model());
  request.set_kind(request_.kind());
  request.set_members_json(members);
  const auto counted = co_await host_.counter->Count(table_, std::move(request));
  TokenAccounting& tokens = failure_.error.tokens;
  if (!counted.counted() || counted.prompt_tokens() < tokens.prompt) co_return;
  tokens.prompt = counted.prompt_tokens();
  tokens.prompt_is_lower_bound = false;
  failure_.error.message = ContextLengthMessage(tokens);
}

Task<void> Session::Settle(Ended ended) {
  Measured measured = meter_->Measure();
  if (cut_) {
    measured.usage.set_completion_tokens(
        std::min(measured.usage.completion_tokens(), hold_->spending().affordable()));
    measured.usage.set_reasoning_tokens(
        std::min(measured.usage.reasoning_tokens(), measured.usage.completion_tokens()));
  }
  if (measured.mismatch) {
    host_.metrics.usage_mismatches.Increment();
    log::Warn("an engine's usage failed the sanity check",
              {{"engine", engine_id_}, {"request", HexEncode(request_.request_id())}});
  }
  if (measured.estimated) host_.metrics.usage_estimated.Increment();
  host_.metrics.prompt_tokens.Increment(static_cast<double>(measured.usage.prompt_tokens()));
  host_.metrics.completion_tokens.Increment(
      static_cast<double>(measured.usage.completion_tokens()));

  billing::v1::MeterOp op = hold_->NewOp();
  billing::v1::SettleOp& settle = *op.mutable_settle();
  *settle.mutable_usage() = measured.usage;
  settle.set_outcome(ended == Ended::kGone     ? billing::v1::OUTCOME_CLIENT_GONE
                     : ended == Ended::kFailed ? billing::v1::OUTCOME_FAILED_MID_STREAM
                                               : billing::v1::OUTCOME_COMPLETED);
  settle.set_cut_by_credit(cut_);
  settle.set_estimated(measured.estimated);
  settle.set_engine_id(engine_id_);
  slot_->SetUsage(measured.usage.prompt_tokens(), measured.usage.completion_tokens());
  slot_->SetDetails(measured.usage.cached_tokens(), measured.usage.cache_write_tokens(),
                    measured.usage.reasoning_tokens());
  hold_->Close();
  const Settled settled = co_await host_.settler.Settle(std::move(op), slot_);
  slot_ = nullptr;
  if (settled.durability == Durability::kOutbox) host_.metrics.settled_through_outbox.Increment();

  End end;
  *end.mutable_usage() = measured.usage;
  end.set_cut_by_credit(cut_);
  end.set_estimated(measured.estimated);
  const Spending& spending = hold_->spending();
  end.set_charged_nano_usd(settled.charged_nano_usd.value_or(std::min(
      spending.ChargeNano(measured.usage.prompt_tokens(), measured.usage.completion_tokens()),
      spending.authorized_nano_usd())));
  if (settled.durability == Durability::kNone) {
    host_.metrics.not_durable.Increment();
    if (ended != Ended::kFailed) {
      failure_ = EngineFailure();
      failure_.error = {.id = ErrorId::kServiceUnavailable,
                        .retry_after_ms = 1000,
                        .internal = "usage could not be recorded"};
      ended = Ended::kFailed;
    }
  }
  co_await SendEnd(std::move(end), ended == Ended::kFailed ? &failure_.error : nullptr);
}

Task<void> Session::SendEnd(End end, const Error* error) {
  if (sink_->cancelled()) co_return;
  if (error != nullptr) {
    rpc::ToDetail(*error, *end.mutable_error());
  }
  inference::v1::Event event;
  *event.mutable_end() = std::move(end);
  co_await sink_->Send(std::move(event));
}

}  // namespace tollgate::inference_router
