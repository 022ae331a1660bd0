// What billing, or the router with a lease, is asked to authorize.
#pragma once

#include "gateway/pipeline/request_context.h"

namespace tollgate::gateway {

// Builds the message that asks for the request's hold.
billing::v1::AuthorizeItem MakeAuthorizeItem(const RequestContext& context);

}  // namespace tollgate::gateway
