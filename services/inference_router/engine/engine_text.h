// Replaces text that an engine cannot take (decision 38, docs/design/wire.md 10.2).
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "tollgate/catalog/v1/catalog.pb.h"

namespace tollgate::inference_router {

// members: the members of a request, as in GenerateRequest, or any JSON text. Empty if they can be
// sent unchanged. Otherwise a copy of the same length or shorter with U+FFFD in place of each
// U+0000 that the kind cannot take. In the arguments of tool calls, which engines parse again,
// U+FFFD also replaces half a surrogate pair.
std::optional<std::string> FitText(catalog::v1::EngineKind kind, std::string_view members);

// Whether the arguments of tool calls in these members may contain something to replace, with or
// without U+0000. True costs FitText a copy and a parse. Never false when FitText has to replace.
bool MayHoldInnerEscape(std::string_view members, bool nul);

// Runs FitText for the engines that one request is sent to in turn, once per kind of text.
class TextFitter {
 public:
  // members must be the same at each call. They and the fitter must outlive the result.
  std::string_view Fit(catalog::v1::EngineKind kind, std::string_view members);

 private:
  struct Made {
    bool done = false;
    std::optional<std::string> text;
  };
  Made made_[2];  // [1]: for kinds that take U+0000; [0]: for the others
};

}  // namespace tollgate::inference_router
