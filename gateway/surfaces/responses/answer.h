// POST /v1/responses: the answer, as a stream of events and as one body.
#pragma once

#include <memory>

#include "gateway/pipeline/surface.h"

namespace tollgate::gateway {

// The request's state is a ResponsesState in both.
// spec: wire.md 5.3, 7.4, decisions.md 4, 23, 24, 27.
std::unique_ptr<StreamEncoder> MakeResponsesStreamEncoder(const CanonicalRequest& request,
                                                          const AnswerStamp& stamp);
// spec: wire.md 5.2.
std::unique_ptr<FoldedAnswer> MakeResponsesFoldedAnswer(const CanonicalRequest& request,
                                                        const AnswerStamp& stamp);

}  // namespace tollgate::gateway
