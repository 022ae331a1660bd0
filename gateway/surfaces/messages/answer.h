// POST /v1/messages: the answer, as a stream of events and as one body.
#pragma once

#include <memory>

#include "gateway/pipeline/surface.h"

namespace tollgate::gateway {

// spec: wire.md 6.3, 7.2, 7.4, decisions.md 23, 24, 28.
std::unique_ptr<StreamEncoder> MakeMessagesStreamEncoder(const CanonicalRequest& request,
                                                         const AnswerStamp& stamp);
// spec: wire.md 6.2, 7.2.
std::unique_ptr<FoldedAnswer> MakeMessagesFoldedAnswer(const CanonicalRequest& request,
                                                       const AnswerStamp& stamp);

}  // namespace tollgate::gateway
