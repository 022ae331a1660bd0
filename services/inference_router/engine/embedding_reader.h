// Reads an engine's embedding response incrementally: each vector becomes an event as soon as it is
// complete, so that a response of many megabytes is never buffered as a whole. See
// docs/design/wire.md 4.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "services/inference_router/domain/engine_usage.h"
#include "services/inference_router/engine/engine_error.h"
#include "tollgate/inference/v1/inference.pb.h"

namespace tollgate::inference_router {

class EmbeddingReader {
 public:
  struct Options {
    int inputs = 1;
    // Context window of the model in tokens, for error messages; 0 = unknown.
    int64_t window = 0;
    // Size limit of the response, in addition to a limit that grows with the inputs. 2048 vectors
    // of 4096 numbers are 45 MB as base64 and up to 180 MB as decimals. Above the limit the client
    // must send fewer inputs.
    int64_t max_bytes = 128 << 20;
  };
  explicit EmbeddingReader(const Options& options) : options_(options) {
    seen_.resize(static_cast<size_t>(options.inputs));
  }

  // Reads the next bytes of the body and appends the vectors that they complete. Returns false on a
  // failure; see failure().
  bool Feed(std::string_view bytes, std::vector<inference::v1::Event>& out);
  // Call at the end of the body. Returns false on a failure; see failure().
  bool End();

  // Valid after End.
  const std::optional<EngineUsage>& usage() const { return usage_; }
  const EngineFailure& failure() const { return failure_; }

 private:
  // Position relative to the top-level member `data`: outside, between two of its elements, or
  // inside an element.
  enum class Position : uint8_t { kOutside, kBetween, kElement };

  size_t AppendStringContent(std::string_view bytes);
  void OnQuote();
  void OnOpen(char bracket);
  bool OnClose(char bracket, std::vector<inference::v1::Event>& out);
  void Append(char c) { (position_ == Position::kElement ? element_ : rest_).push_back(c); }
  bool ReadElement(std::vector<inference::v1::Event>& out);
  bool Fail(std::string_view internal);
  bool FailAboveLimit();
  bool FailTooManyInputs();  // the client's request is the cause
  bool CheckSize();

  const Options options_;
  Position position_ = Position::kOutside;
  int depth_ = 0;
  bool in_string_ = false;
  bool escaped_ = false;
  std::string key_;      // last string of the outermost object
  std::string element_;  // current element of `data`, as received so far
  std::string rest_;     // the response without the elements of `data`
  int64_t bytes_ = 0;
  size_t numbers_ = 0;      // in all vectors
  std::vector<bool> seen_;  // by input
  int next_ = 0;            // index of the next element that has no `index`
  int found_ = 0;
  std::optional<EngineUsage> usage_;
  EngineFailure failure_;
};

}  // namespace tollgate::inference_router
