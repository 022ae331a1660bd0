// The request parameters that a model supports, by their OpenRouter names.
#pragma once

#include <string_view>
#include <vector>

#include "tollgate/catalog/v1/catalog.pb.h"

namespace tollgate::gateway {

// The parameters as the model list shows them.
std::vector<std::string_view> SupportedParameters(const catalog::v1::Model& model);

// Whether the model supports a request parameter: one of the list, or one that every model of its
// kind takes, such as `n`. False for unknown names, which are passed to engines unchanged.
bool SupportsParameter(const catalog::v1::Model& model, std::string_view name);

}  // namespace tollgate::gateway
