// GET /v1/models: the catalog as callers see it. spec: wire.md section 8, gateway-spec.md "Model
// catalog entry", decisions.md 13.
#pragma once

#include <string>
#include <string_view>

#include "tollgate/auth/v1/auth.pb.h"
#include "tollgate/catalog/v1/catalog.pb.h"

namespace tollgate::gateway {

// The body. key is null for a caller without a (valid) key: it sees the models that belong to
// nobody; with a key, also its workspace's own, and of all those only the ones on its allow-list.
std::string RenderModelList(const catalog::v1::Snapshot& snapshot, const auth::v1::Key* key);

// A strong entity tag for a body, with its quotes.
std::string EntityTag(std::string_view body);
// Whether an If-None-Match header names this tag.
bool MatchesTag(std::string_view if_none_match, std::string_view tag);

}  // namespace tollgate::gateway
