#include "common/host/plain_text.h"

#include <string>
#include <utility>
#include <vector>

#include "common/rpc/tls.h"
#include "tollgate/config/v1/config.pb.h"

namespace tollgate::host {
namespace {

bool HasTcp(const std::string& addresses) {
  size_t at = 0;
  while (at < addresses.size()) {
    const size_t comma = std::min(addresses.find(',', at), addresses.size());
    std::string address = addresses.substr(at, comma - at);
    address.erase(0, address.find_first_not_of(' '));
    if (!address.empty() && !address.starts_with("unix:") && !address.starts_with("inproc:")) {
      return true;
    }
    at = comma + 1;
  }
  return false;
}

// Whether a listen address is reachable only from this machine.
bool IsOfThisMachine(std::string_view address) {
  if (address.starts_with("unix:") || address.starts_with("[::1]:")) return true;
  const std::string_view host = address.substr(0, address.rfind(':'));
  return host == "localhost" ||
         (host.starts_with("127.") && host.find_first_not_of("0123456789.") == host.npos);
}

}  // namespace

Result<void> CheckPlainHttp(std::string_view field, std::string_view address, bool has_tls,
                            bool allowed, std::string_view remedy) {
  if (address.empty() || has_tls || allowed || IsOfThisMachine(address)) return {};
  return Internal(std::string(field) + ": \"" + std::string(address) +
                  "\" is reachable from other machines and would not be encrypted: set " +
                  std::string(remedy));
}

Result<void> CheckPlainText(const config::v1::HostConfig& host,
                            const config::v1::TargetsConfig& targets) {
  if (rpc::TlsIsOn(host.tls()) || host.insecure_plaintext()) return {};
  std::vector<std::pair<const char*, std::string>> addresses = {
      {"host.grpc_listen", host.grpc_listen()},
      {"host.admin_grpc_listen", host.admin_grpc_listen()},
      {"targets.auth", targets.auth()},
      {"targets.ratelimit", targets.ratelimit()},
      {"targets.billing", targets.billing()},
      {"targets.catalog", targets.catalog()},
      {"targets.auth_admin", targets.auth_admin()},
      {"targets.billing_admin", targets.billing_admin()},
      {"targets.catalog_admin", targets.catalog_admin()},
      {"targets.gateways", targets.gateways()}};
  for (const std::string& router : targets.inference_routers()) {
    addresses.emplace_back("targets.inference_routers", router);
  }
  for (const std::string& router : targets.router_admin()) {
    addresses.emplace_back("targets.router_admin", router);
  }
  for (const auto& [field, address] : addresses) {
    if (!HasTcp(address)) continue;
    return Internal(std::string(field) + ": \"" + address +
                    "\" is a TCP address, and calls over it would be neither encrypted nor "
                    "authenticated: set host.tls (certificate_file, private_key_file, "
                    "authority_file), use a unix socket, or, on a network that nobody else "
                    "reaches, set host.insecure_plaintext: true");
  }
  return {};
}

}  // namespace tollgate::host
