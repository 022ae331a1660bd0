#include "gateway/surfaces/shared/answer_cost.h"

#include <algorithm>

#include "common/json/writer.h"

namespace tollgate::gateway {

std::string AnswerCost::Members(const inference::v1::End& end) const {
  if (!asked_) return "";
  const auto part = [&](int64_t input, int64_t output) {
    return PicoToDecimalUsd(
        CostPicoUsd(rates_, std::max<int64_t>(input, 0), std::max<int64_t>(output, 0)));
  };
  json::Writer details;
  details.Text("prompt_cost", part(end.usage().prompt_tokens(), 0));
  details.Text("completion_cost", part(0, end.usage().completion_tokens()));
  if (end.cut_by_credit()) details.Flag("cut_by_credit", true);
  const std::string members = json::Writer()
                                  .Raw("cost", NanoToDecimalUsd(end.charged_nano_usd()))
                                  .Raw("cost_details", details.Done())
                                  .Done();
  return "," + members.substr(1, members.size() - 2);
}

}  // namespace tollgate::gateway
