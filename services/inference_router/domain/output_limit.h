// Ends the choices of an answer at the number of tokens that the request allows, whatever the
// engine does (decision 72). Pure.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tollgate/inference/v1/inference.pb.h"

namespace tollgate::inference_router {

class OutputLimit {
 public:
  // tokens: of each choice; 0: unknown, nothing is ended.
  OutputLimit(int64_t tokens, int choices);

  // Call for each delta before it is counted, with the tokens of its choice before it. A delta with
  // output beyond the limit becomes the end of its choice by length; one after that end is emptied.
  void Apply(int64_t tokens_before, inference::v1::Delta& delta);
  // For the deltas of a whole answer, one of each choice: shortens their texts to the share within
  // the limit. tokens: of all of them.
  void Shorten(int64_t tokens, std::span<inference::v1::Event> answer);

  // Whether every choice has ended, at least one of them by this limit.
  bool over() const;
  // Whether anything was ended or shortened.
  bool exceeded() const { return exceeded_; }

 private:
  const int64_t tokens_;
  std::vector<bool> ended_;
  bool exceeded_ = false;
};

}  // namespace tollgate::inference_router
