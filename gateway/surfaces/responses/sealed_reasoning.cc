#include "gateway/surfaces/responses/sealed_reasoning.h"

#include <utility>

#include "common/base/base64.h"
#include "common/base/seal.h"

namespace tollgate::gateway {

namespace {

// Version of the sealed format, so that a later one can be recognized.
constexpr std::string_view kPrefix = "tgr1.";
constexpr size_t kTimeBytes = 8;

std::string TimeBytes(int64_t seconds) {
  std::string out;
  for (int shift = 56; shift >= 0; shift -= 8) {
    out += static_cast<char>(static_cast<uint64_t>(seconds) >> shift);
  }
  return out;
}

int64_t ReadTime(std::string_view bytes) {
  uint64_t seconds = 0;
  for (const char byte : bytes) seconds = seconds << 8 | static_cast<unsigned char>(byte);
  return static_cast<int64_t>(seconds);
}

}  // namespace

ReasoningSeal::ReasoningSeal(std::shared_ptr<const ReasoningKeys> keys, std::string_view workspace,
                             std::string_view model)
    : keys_(std::move(keys)) {
  if (!keys_) return;
  // The length marks the end of the workspace, so that no model name can continue it.
  context_ = "reasoning " + std::to_string(workspace.size()) + " ";
  context_ += workspace;
  context_ += model;
}

std::string ReasoningSeal::Seal(std::string_view text, int64_t now_s) const {
  std::string content = TimeBytes(now_s + keys_->lifetime_s);
  content += text;
  return std::string(kPrefix) +
         Base64Encode(tollgate::Seal(keys_->keys.front(), context_, content));
}

std::optional<std::string> ReasoningSeal::Unseal(std::string_view sealed, int64_t now_s) const {
  if (!keys_ || !sealed.starts_with(kPrefix)) return std::nullopt;
  const auto bytes = Base64Decode(sealed.substr(kPrefix.size()));
  if (!bytes) return std::nullopt;
  for (const std::string& key : keys_->keys) {
    auto content = tollgate::Unseal(key, context_, *bytes);
    if (!content || content->size() < kTimeBytes) continue;
    if (ReadTime(std::string_view(*content).substr(0, kTimeBytes)) <= now_s) return std::nullopt;
    return content->substr(kTimeBytes);
  }
  return std::nullopt;
}

}  // namespace tollgate::gateway
