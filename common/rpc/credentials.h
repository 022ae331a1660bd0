// Mutual TLS between our own processes, from one certificate, key and authority (config TlsConfig).
#pragma once

#include <memory>

#include "common/error/error.h"
#include "tollgate/config/v1/config.pb.h"

namespace grpc {
class ChannelCredentials;
class ServerCredentials;
}  // namespace grpc

namespace tollgate::rpc {

// Plain text when no file is named. With TLS every caller must show a certificate of the authority and,
// when allowed_callers is not empty, carry one of its names (URI or DNS subject alternative name):
// others get PERMISSION_DENIED.
Result<std::shared_ptr<grpc::ServerCredentials>> MakeServerCredentials(
    const config::v1::TlsConfig& tls);
Result<std::shared_ptr<grpc::ChannelCredentials>> MakeChannelCredentials(
    const config::v1::TlsConfig& tls);

}  // namespace tollgate::rpc
