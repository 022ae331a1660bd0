// One model of GET /v1/models, with the members that OpenAI, OpenRouter-style and Messages clients
// read. Where they expect different things under one name, docs/contract.md "Model catalog entry"
// decides (docs/design/wire.md 8):
//  - `pricing.input` and `output` are numbers per million tokens, `prompt` and `completion` strings
//    per token (a);
//  - `capabilities` is a list of names, not an object of flags (b);
//  - `max_input_tokens` is present only when the output cap is below the window (c);
//  - `links` is an object with `documentation` and `details` (d).
#pragma once

#include <string>

#include "tollgate/catalog/v1/catalog.pb.h"

namespace tollgate::gateway {

std::string RenderModelEntry(const catalog::v1::Model& model);

}  // namespace tollgate::gateway
