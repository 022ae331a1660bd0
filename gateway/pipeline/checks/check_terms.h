// Stage: checks that a model meets the caller's terms, the member `provider` (docs/design/wire.md
// 2.7).
#pragma once

#include "common/error/error.h"
#include "gateway/pipeline/request_context.h"

namespace tollgate::gateway {

// Checks the names of providers. The only provider is the brand. Fails with 400 naming
// `provider.order`, `provider.only` or `provider.ignore` when they exclude it.
Result<void> CheckProviderNames(const RequestContext& context);

// Checks the current model: its price, its supported parameters, and what its engines keep. Fails
// with 400 naming the term that it does not meet.
Result<void> CheckTerms(const RequestContext& context);

}  // namespace tollgate::gateway
