// Error of an admin call when the provider failed.
#pragma once

#include "common/admin/failure.h"
#include "services/billing/payments/provider.h"

namespace tollgate::billing::payments {

inline Fail<admin::Failure> ProviderFailed(const ProviderError& error) {
  return Fail{admin::Failure{.code = grpc::StatusCode::UNAVAILABLE,
                             .reason = "PROVIDER_UNAVAILABLE",
                             .message =
                                 "the payment provider failed; repeat the call with the same "
                                 "request_id",
                             .metadata = {{"code", error.code}},
                             .retry_after_ms = 5000}};
}

}  // namespace tollgate::billing::payments
