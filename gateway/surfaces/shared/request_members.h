// Reads the top-level members of a request body, for all inference endpoints.
#pragma once

#include <functional>
#include <span>

#include "gateway/pipeline/canonical_request.h"
#include "gateway/surfaces/shared/fields.h"
#include "gateway/surfaces/shared/routing.h"

namespace tollgate::gateway {

// Checks every member by the surface's rules, or else by the shared ones (engine_fields.h), and
// forwards it unless its rule says otherwise. Null members count as absent (decision 17). Members
// without a rule are forwarded unchanged. Members that chat templates can see are added to the
// prompt's size. Sets template_member, cache_salt and include_cost of the request, and what
// routing.h reads; model and kind must already be set. on_member: called after the check for each
// member with a rule that is not dropped; may be empty.
Result<void> ReadMembers(
    json::Value body, std::span<const FieldRule> rules, MemberWriter& writer,
    CanonicalRequest& request,
    const std::function<Result<void>(const FieldRule& rule, json::Value member)>& on_member = {});

// Reads `stream_options.include_usage`; false for a request that does not stream.
Result<bool> ReadIncludeUsage(json::Value body);

}  // namespace tollgate::gateway
