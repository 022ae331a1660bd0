// Reads certificates for checks at start and for metrics. gRPC reads the same files itself.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/result.h"

namespace tollgate::rpc {

// Returns when the first certificate of a PEM file expires, in seconds since 1970.
BasicResult<int64_t, std::string> CertificateExpiry(const std::string& certificate_file);
// Returns the URIs among the alternative names of the first certificate of a PEM file; empty if the
// file cannot be read.
std::vector<std::string> CertificateUris(const std::string& certificate_file);
// Checks that the key in one PEM file belongs to the first certificate of the other.
BasicResult<void, std::string> CheckKeyPair(const std::string& certificate_file,
                                            const std::string& private_key_file);

}  // namespace tollgate::rpc
