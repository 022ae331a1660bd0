// Text that an engine cannot take (decision 38, docs/design/wire.md 10.2).
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "tollgate/catalog/v1/catalog.pb.h"

namespace tollgate::inference_router {

// Whether engines of this kind read U+0000 in a text like any other character. Those of the other
// kinds hold texts as C strings in places, and cut them there without an error.
bool TakesNul(catalog::v1::EngineKind kind);

// members: of a request, as in GenerateRequest, or any JSON text. Empty if they can be sent as they
// are. Else a copy of the same length or shorter in which U+FFFD stands for each U+0000 that the
// kind does not take, and, in the arguments of tool calls, which engines parse once more, also for
// half a surrogate pair.
std::optional<std::string> FitText(catalog::v1::EngineKind kind, std::string_view members);

// Whether the arguments of tool calls in these members may hold something to replace, with or
// without U+0000. True costs FitText a copy and a parse; never false where it has to replace.
bool MayHoldInnerEscape(std::string_view members, bool nul);

// FitText for the engines that one request is sent to in turn: each text is made once.
class TextFitter {
 public:
  // The same members at each call, which outlive the answer, as does the fitter.
  std::string_view Fit(catalog::v1::EngineKind kind, std::string_view members);

 private:
  struct Made {
    bool done = false;
    std::optional<std::string> text;
  };
  Made made_[2];  // for kinds that take U+0000, and for the others
};

}  // namespace tollgate::inference_router
