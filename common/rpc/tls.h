// Mutual TLS between Tollgate processes. The certificates of peers are verified against the
// configured authority; the name of the caller is checked for each call (allowed_callers).
#pragma once

#include <memory>
#include <string>

#include "common/base/result.h"

namespace grpc {
class ChannelCredentials;
class ServerCredentials;
}  // namespace grpc

namespace tollgate::config::v1 {
class TlsConfig;
}

namespace tollgate::rpc {

bool TlsIsOn(const config::v1::TlsConfig& tls);
// The error names the file that is missing or unreadable.
BasicResult<std::shared_ptr<grpc::ChannelCredentials>, std::string> MakeTlsChannelCredentials(
    const config::v1::TlsConfig& tls);
BasicResult<std::shared_ptr<grpc::ServerCredentials>, std::string> MakeTlsServerCredentials(
    const config::v1::TlsConfig& tls);

}  // namespace tollgate::rpc
