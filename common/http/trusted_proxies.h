// The client address of requests behind load balancers (docs/design/hostile-inputs.md H48): only
// the configured proxies may set it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/base/ip_network.h"
#include "common/error/error.h"
#include "common/http/exchange.h"

namespace tollgate::http {

class TrustedProxies {
 public:
  TrustedProxies() = default;
  // list: addresses and networks, for example "10.0.0.7", "10.0.0.0/8", "fd00::/8".
  static Result<TrustedProxies> Parse(const std::vector<std::string>& list);

  bool empty() const { return networks_.empty(); }
  bool Contains(std::string_view address) const;
  // The client address of a request. Behind a trusted proxy it is the last address in
  // X-Forwarded-For that does not belong to a trusted proxy: earlier entries can be forged.
  std::string ClientAddress(const std::string& peer_address, const Headers& headers) const;

 private:
  bool Matches(const IpAddress& address) const;

  std::vector<IpNetwork> networks_;
};

}  // namespace tollgate::http
