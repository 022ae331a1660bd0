// The response object, sent as a single body and within the events of a stream.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "gateway/pipeline/surface.h"
#include "gateway/surfaces/responses/items.h"
#include "gateway/surfaces/shared/answer_cost.h"

namespace tollgate::gateway {

// The object always has every key of docs/design/wire.md 5.2.
class ResponseObject {
 public:
  ResponseObject(const CanonicalRequest& request, const ResponseStamp& stamp);

  void AppendInProgress(std::string& out) const { Append(out, {.status = "in_progress"}); }
  // output: the JSON array of items.
  void AppendEnded(std::string& out, const OutputItems::Outcome& outcome, std::string_view output,
                   const inference::v1::End& end) const;
  void AppendFailed(std::string& out, const Error& error, std::string_view output) const;

 private:
  // The members that change while the response is generated. All are JSON except the status.
  struct Progress {
    std::string_view status;
    std::string_view completed_at = "null";
    std::string_view error = "null";
    std::string_view incomplete_details = "null";
    std::string_view output = "[]";
    std::string_view usage = "null";
  };
  void Append(std::string& out, const Progress& progress) const;

  const std::shared_ptr<SurfaceState> state_;
  const ResponseStamp stamp_;
  const std::string model_;  // JSON
  const AnswerCost cost_;
};

}  // namespace tollgate::gateway
