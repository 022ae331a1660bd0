// Reads an engine's answer to an embedding request as it arrives: each vector becomes an event as
// soon as it is whole, so that an answer of many megabytes is never held as one. spec: wire.md 4.
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
    // Context window of the model, for error texts; 0 = unknown.
    int64_t window = 0;
    // Bytes of the whole answer. 2048 vectors of 4096 numbers are 45 MB as base64; as decimals they
    // may be 180 MB, and then the caller is told to send fewer inputs.
    int64_t most_bytes = 128 << 20;
  };
  explicit EmbeddingReader(const Options& options) : options_(options) {
    seen_.resize(static_cast<size_t>(options.inputs));
  }

  // The next bytes of the body; appends the vectors that they complete. False: see failure().
  bool Feed(std::string_view bytes, std::vector<inference::v1::Event>& out);
  // The body has come to its end. False: see failure().
  bool End();

  // After End.
  const std::optional<EngineUsage>& usage() const { return usage_; }
  const EngineFailure& failure() const { return failure_; }

 private:
  // Whether a top-level member with a list of vectors is being read, and how far.
  enum class Where : uint8_t { kOutside, kBetween, kElement };

  size_t PutPlain(std::string_view bytes);
  void OnQuote();
  void OnOpen(char bracket);
  bool OnClose(char bracket, std::vector<inference::v1::Event>& out);
  void Put(char c) { (where_ == Where::kElement ? element_ : rest_).push_back(c); }
  bool ReadElement(std::vector<inference::v1::Event>& out);
  bool Broke(std::string_view internal);

  const Options options_;
  Where where_ = Where::kOutside;
  int depth_ = 0;
  bool in_string_ = false;
  bool escaped_ = false;
  std::string key_;      // the last string of the outermost object
  std::string element_;  // of `data`, as far as it has come
  std::string rest_;     // the answer without the elements of `data`
  int64_t bytes_ = 0;
  std::vector<bool> seen_;  // by input
  int next_ = 0;            // index of an element that tells none
  int found_ = 0;
  std::optional<EngineUsage> usage_;
  EngineFailure failure_;
};

}  // namespace tollgate::inference_router
