// TLS of the public HTTP addresses: the gateway's and the dashboard's.
#pragma once

#include <memory>
#include <string_view>

#include "common/http/tls.h"
#include "tollgate/config/v1/config.pb.h"

namespace tollgate::host {

// Null if TLS is not configured. field: configuration field named in errors, for example
// "gateway.edge_tls".
Result<std::shared_ptr<http::TlsServerContext>> LoadEdgeTls(const config::v1::EdgeTls& settings,
                                                            std::string_view field);

}  // namespace tollgate::host
