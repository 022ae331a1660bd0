// Whose word about a caller's address is believed (reliability.md H48): that of the operator's own
// load balancers, and nobody else's.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/error/error.h"
#include "common/http/exchange.h"

namespace tollgate::http {

class TrustedProxies {
 public:
  TrustedProxies() = default;
  // Addresses and networks, for example "10.0.0.7", "10.0.0.0/8", "fd00::/8".
  static Result<TrustedProxies> Parse(const std::vector<std::string>& list);

  bool empty() const { return networks_.empty(); }
  bool Has(std::string_view address) const;
  // The address that a request came from. Behind a trusted proxy it is the last address in
  // X-Forwarded-For that is not such a proxy itself: what stands before it, anybody may have
  // written.
  std::string CallerOf(const std::string& peer_address, const Headers& headers) const;

 private:
  using Address = std::array<uint8_t, 16>;  // IPv4 as ::ffff:a.b.c.d
  struct Network {
    Address address;
    int bits;
  };
  bool Holds(const Address& address) const;
  static bool Read(std::string_view text, Address* address);

  std::vector<Network> networks_;
};

}  // namespace tollgate::http
