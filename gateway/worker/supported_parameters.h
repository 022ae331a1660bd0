// The parameters of requests that a model supports, by their OpenRouter names.
#pragma once

#include <string_view>
#include <vector>

#include "tollgate/catalog/v1/catalog.pb.h"

namespace tollgate::gateway {

// As the model list shows them.
std::vector<std::string_view> SupportedParameters(const catalog::v1::Model& model);

// Whether a request's parameter is one of them, or one that every model of its kind takes, such as
// `n`. False for a name that is unknown here, which engines get as it is.
bool SupportsParameter(const catalog::v1::Model& model, std::string_view name);

}  // namespace tollgate::gateway
