// The body and entity tag of GET /v1/models. See docs/design/wire.md 8, docs/contract.md "Model
// catalog entry", decision 13.
#pragma once

#include <string>
#include <string_view>

#include "tollgate/auth/v1/auth.pb.h"
#include "tollgate/catalog/v1/catalog.pb.h"

namespace tollgate::gateway {

// Without a valid key (null) the body lists the public models. With a key it also lists the private
// models of the key's workspace, restricted to the key's allow-list.
std::string RenderModelList(const catalog::v1::Snapshot& snapshot, const auth::v1::Key* key);

// A strong entity tag for a body, with its quotes.
std::string EntityTag(std::string_view body);
// Whether an If-None-Match header names this tag.
bool MatchesTag(std::string_view if_none_match, std::string_view tag);

}  // namespace tollgate::gateway
