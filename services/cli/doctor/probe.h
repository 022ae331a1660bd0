// How the doctor calls others: blocking, within a time-out.
#pragma once

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>

#include <cstdint>
#include <memory>
#include <string>

#include "common/base/result.h"
#include "services/cli/doctor/checks.h"

namespace tollgate::cli {

// "" or why no TCP connection to host:port can be made. Nothing is sent.
std::string TryToConnect(const std::string& address, int timeout_ms);

// A channel to a service of the installation, with the operator's certificate over TCP. The error
// says what is wrong with the certificate's files.
BasicResult<std::shared_ptr<grpc::Channel>, std::string> OpenChannel(const DoctorOptions& options,
                                                                     const std::string& address,
                                                                     const std::string& service);
void PrepareCall(const DoctorOptions& options, grpc::ClientContext& context);

// How far another clock is ahead of this machine's, in microseconds: what it said, and when it was
// asked and had answered by ours. uncertain_us: half of what the way took.
struct ClockReading {
  int64_t ahead_us = 0;
  int64_t uncertain_us = 0;
};
ClockReading ReadClock(int64_t theirs_us, int64_t asked_us, int64_t answered_us);
Finding ClockFinding(const std::string& subject, const ClockReading& reading);

// Whether users beside the owner and the group may read or write the file, and get to it through
// all of its folders.
bool OthersReach(const std::string& path);

// "12 ms", "1.5 s".
std::string Duration(int64_t us);
// "12.0 GiB".
std::string Bytes(int64_t bytes);

}  // namespace tollgate::cli
