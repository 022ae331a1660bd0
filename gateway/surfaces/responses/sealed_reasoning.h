// `encrypted_content` of reasoning items: the reasoning text, sealed, so that clients that keep the
// conversation themselves can send it back (ADR 0017).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "gateway/worker/reasoning_keys.h"

namespace tollgate::gateway {

// Seals and unseals for one workspace and model. Text sealed for others cannot be unsealed.
class ReasoningSeal {
 public:
  // keys: null: nothing is sealed or unsealed. model: as sent by the client.
  ReasoningSeal(std::shared_ptr<const ReasoningKeys> keys, std::string_view workspace,
                std::string_view model);

  bool enabled() const { return keys_ != nullptr; }

  // text: the contents of a JSON string. The result needs no escapes in JSON. now_s: Unix time in
  // seconds. Requires enabled().
  std::string Seal(std::string_view text, int64_t now_s) const;
  // Returns the text, or nullopt if it was not sealed here, was changed, or has expired.
  std::optional<std::string> Unseal(std::string_view sealed, int64_t now_s) const;

 private:
  std::shared_ptr<const ReasoningKeys> keys_;
  std::string context_;
};

}  // namespace tollgate::gateway
