#include "common/host/edge_tls.h"

#include <string>
#include <utility>
#include <vector>

namespace tollgate::host {

Result<std::shared_ptr<http::TlsServerContext>> LoadEdgeTls(const config::v1::EdgeTls& settings,
                                                            std::string_view field) {
  std::vector<http::CertificateFiles> files;
  if (!settings.certificate_file().empty() || !settings.private_key_file().empty()) {
    files.push_back({settings.certificate_file(), settings.private_key_file()});
  } else if (settings.further_certificates().empty()) {
    return std::shared_ptr<http::TlsServerContext>();
  }
  for (const auto& further : settings.further_certificates()) {
    files.push_back({further.certificate_file(), further.private_key_file()});
  }
  auto tls = http::TlsServerContext::Load(std::move(files));
  if (!tls.ok()) return Internal(std::string(field) + ": " + tls.error().internal);
  return *std::move(tls);
}

}  // namespace tollgate::host
