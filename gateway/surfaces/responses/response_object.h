// The response object: whole as the body of an answer, and inside the events of a stream.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "gateway/pipeline/surface.h"
#include "gateway/surfaces/responses/items.h"

namespace tollgate::gateway {

// spec: wire.md 5.2, every key of its table, always.
class ResponseObject {
 public:
  ResponseObject(const CanonicalRequest& request, const AnswerStamp& stamp);

  void AppendInProgress(std::string& out) const { Append(out, {.status = "in_progress"}); }
  // output: the items' array.
  void AppendEnded(std::string& out, const OutputItems::Outcome& outcome, std::string_view output,
                   const tollgate::common::v1::Usage& usage) const;
  void AppendFailed(std::string& out, const Error& error, std::string_view output) const;

 private:
  // What changes while a response goes on. JSON but for the status.
  struct Changing {
    std::string_view status;
    std::string_view completed_at = "null";
    std::string_view error = "null";
    std::string_view incomplete_details = "null";
    std::string_view output = "[]";
    std::string_view usage = "null";
  };
  void Append(std::string& out, const Changing& changing) const;

  const std::shared_ptr<SurfaceState> state_;
  const AnswerStamp stamp_;
  const std::string model_;  // JSON
};

}  // namespace tollgate::gateway
