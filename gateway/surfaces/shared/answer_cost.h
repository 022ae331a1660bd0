// The cost of an answer, as members of its usage object, for callers that asked for it.
#pragma once

#include <string>

#include "gateway/pipeline/canonical_request.h"

namespace tollgate::gateway {

class AnswerCost {
 public:
  explicit AnswerCost(const CanonicalRequest& request)
      : asked_(request.include_cost), rates_(request.rates) {}

  bool asked() const { return asked_; }
  // `,"cost":…,"cost_details":{…}` for the end of a usage object; empty unless the request asked
  // for it. cost: the amount in USD that the ledger has booked, a number with its exact digits to
  // the nano-dollar. cost_details: tokens times rates to the pico-dollar, before the rounding down,
  // and cut_by_credit if the answer was cut.
  std::string Members(const inference::v1::End& end) const;

 private:
  const bool asked_;
  const Rates rates_;
};

}  // namespace tollgate::gateway
