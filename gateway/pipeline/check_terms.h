// Stage: whether a model meets the caller's terms, the member `provider` (docs/design/wire.md 2.7).
#pragma once

#include "common/error/error.h"
#include "gateway/pipeline/request_context.h"

namespace tollgate::gateway {

// The names of providers, of which there is one, the brand: 400 naming `provider.order`,
// `provider.only` or `provider.ignore` when they leave none.
Result<void> CheckProviderNames(const RequestContext& context);

// The current model: 400 naming the term that it does not meet: its price, the parameters that it
// supports, what its engines keep.
Result<void> CheckTerms(const RequestContext& context);

}  // namespace tollgate::gateway
