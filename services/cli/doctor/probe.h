// Calls that the doctor makes: blocking, with a timeout.
#pragma once

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>

#include <cstdint>
#include <memory>
#include <string>

#include "common/base/result.h"
#include "services/cli/doctor/checks.h"

namespace tollgate::cli {

// Why no TCP connection to host:port can be made, or "". Sends nothing.
std::string TryToConnect(const std::string& address, int timeout_ms);

// A channel to a service of the installation, over TCP with the operator's certificate. The error
// names the problem with the certificate's files.
BasicResult<std::shared_ptr<grpc::Channel>, std::string> OpenChannel(const DoctorOptions& options,
                                                                     const std::string& address,
                                                                     const std::string& service);
void PrepareCall(const DoctorOptions& options, grpc::ClientContext& context);

// How far another clock is ahead of this machine's, in microseconds. theirs_us: the time that it
// reported. asked_us, answered_us: when the call began and ended by our clock. uncertain_us: half
// of the call's duration.
struct ClockReading {
  int64_t ahead_us = 0;
  int64_t uncertain_us = 0;
};
ClockReading ReadClock(int64_t theirs_us, int64_t asked_us, int64_t answered_us);
Finding ClockFinding(const std::string& subject, const ClockReading& reading);

// Whether users other than the owner and the group can read or write the file, all folders above it
// included.
bool OthersReach(const std::string& path);

// "12 ms", "1.5 s".
std::string Duration(int64_t us);
// "12.0 GiB".
std::string Bytes(int64_t bytes);

}  // namespace tollgate::cli
