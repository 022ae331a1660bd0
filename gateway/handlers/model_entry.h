// One model of the list, with the members that three kinds of callers read: ours and OpenAI's,
// those of OpenRouter-style consumers, and those of the Messages family's clients. Where they want
// different things under one name, gateway-spec.md "Model catalog entry" decides (wire.md section
// 8):
//  - `pricing.input` and `output` are numbers per million tokens; `prompt` and `completion` strings
//    per token (a);
//  - `capabilities` is a list of names, not an object of flags (b);
//  - `max_input_tokens` is there only where the output cap is below the window (c);
//  - `links` is an object that has `details` beside ours (d).
#pragma once

#include <string>

#include "tollgate/catalog/v1/catalog.pb.h"

namespace tollgate::gateway {

std::string RenderModelEntry(const catalog::v1::Model& model);

}  // namespace tollgate::gateway
