#include "services/inference_router/run/admission.h"

#include <algorithm>

#include "common/rpc/error_detail.h"

namespace tollgate::inference_router {

bool IsEmbedding(const inference::v1::GenerateRequest& request) {
  return request.kind() == inference::v1::REQUEST_KIND_EMBEDDING;
}

int64_t TokensPerChoice(const inference::v1::GenerateRequest& request) {
  return request.output_tokens_bound() > 0 ? request.output_tokens_bound() : request.max_tokens();
}

// Embeddings have no output, so only the input is held and charged.
Rates RatesOf(const inference::v1::GenerateRequest& request) {
  const auto& price = request.hold().price();
  return Rates{std::max<int64_t>(price.input_pico_usd(), 0),
               IsEmbedding(request) ? 0 : std::max<int64_t>(price.output_pico_usd(), 0)};
}

HoldKeeper::Options HoldOptions(const RunContext& context) {
  const inference::v1::GenerateRequest& request = context.request;
  HoldKeeper::Options options;
  if (context.trace) options.trace_id = context.trace->TraceIdHex();
  options.admission = context.ticket;
  options.request_id = request.request_id();
  options.workspace_id = request.workspace_id();
  options.attempt = request.attempt();
  options.spending.rates = RatesOf(request);
  options.spending.authorized_nano_usd = request.hold().authorized_nano_usd();
  options.spending.slice_nano_usd = request.hold().slice_nano_usd();
  options.spending.prompt_tokens_bound = request.prompt_tokens_bound();
  options.spending.max_output_tokens = TokensPerChoice(request) * request.samples();
  return options;
}

Task<bool> AdmitFromLease(RunContext& context) {
  if (context.host.leases == nullptr) co_return false;
  inference::v1::GenerateRequest& request = context.request;
  context.ticket = co_await context.host.leases->Admit(std::move(*request.mutable_admission()));
  request.clear_admission();
  if (!context.ticket) co_return false;
  inference::v1::Hold& hold = *request.mutable_hold();
  hold.set_authorized_nano_usd(context.ticket->authorized_nano_usd());
  hold.set_slice_nano_usd(
      HoldNanoUsd(CostPicoUsd(RatesOf(request), 0, CreditLeases::kSliceTokens)));
  co_return true;
}

inference::v1::End NoLease() {
  inference::v1::End end;
  end.set_not_run(true);
  end.set_no_lease(true);
  rpc::ToDetail({.id = ErrorId::kServiceUnavailable,
                 .retry_after_ms = 1000,
                 .internal = "no lease covers the request"},
                *end.mutable_error());
  return end;
}

}  // namespace tollgate::inference_router
