#include "gateway/worker/key_rules.h"

#include <algorithm>

#include "common/base/ip_network.h"

namespace tollgate::gateway {

bool AllowsModel(const auth::v1::Key& key, std::string_view model) {
  const auto& allowed = key.allowed_models();
  return allowed.empty() || std::ranges::any_of(allowed, [model](std::string_view entry) {
           if (!entry.ends_with("/*")) return entry == model;
           return model.starts_with(entry.substr(0, entry.size() - 1));
         });
}

bool AllowsAddress(const auth::v1::Key& key, std::string_view address) {
  const auto& allowed = key.allowed_addresses();
  if (allowed.empty()) return true;
  const auto ip = ParseIpAddress(address.substr(0, address.find('%')));
  return ip && std::ranges::any_of(allowed, [&ip](const std::string& entry) {
           const auto network = IpNetwork::Parse(entry);
           return network && network->Contains(*ip);
         });
}

}  // namespace tollgate::gateway
