#include "services/cli/doctor/probe.h"

#include <fcntl.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "common/admin/caller.h"
#include "common/base/try.h"
#include "common/rpc/connect_errno.h"
#include "common/rpc/tls.h"

namespace tollgate::cli {
namespace {

// Above this difference the ledger and the gateways report it, too
// (tollgate_billing_clock_step_seconds).
constexpr int64_t kMaxSkewUs = 1'000'000;
constexpr int64_t kFineSkewUs = 250'000;

std::string TryAddress(const addrinfo& to, int timeout_ms) {
  const int socket = ::socket(to.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (socket < 0) return std::strerror(errno);
  std::string error;
  if (::connect(socket, to.ai_addr, to.ai_addrlen) != 0) {
    if (errno == EINPROGRESS) {
      pollfd waits{.fd = socket, .events = POLLOUT, .revents = 0};
      int failed = 0;
      socklen_t size = sizeof failed;
      if (::poll(&waits, 1, timeout_ms) <= 0) {
        error = "no answer within " + Duration(int64_t{timeout_ms} * 1000);
      } else if (::getsockopt(socket, SOL_SOCKET, SO_ERROR, &failed, &size) == 0 && failed != 0) {
        error = std::strerror(failed);
      }
    } else {
      error = std::strerror(errno);
    }
  }
  ::close(socket);
  return error;
}

std::string WithOneDecimal(double value, const char* unit) {
  char text[48];
  std::snprintf(text, sizeof text, "%.1f %s", value, unit);
  return text;
}

}  // namespace

std::string TryToConnect(const std::string& address, int timeout_ms) {
  const size_t colon = address.rfind(':');
  if (colon == std::string::npos) return "the address has no port";
  std::string host = address.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int failed = ::getaddrinfo(host.c_str(), address.c_str() + colon + 1, &hints, &found);
  if (failed != 0) return "the name does not resolve: " + std::string(::gai_strerror(failed));
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> all(found, ::freeaddrinfo);
  std::string error = "the name has no addresses";
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    error = TryAddress(*one, timeout_ms);
    if (error.empty()) return "";
  }
  return error;
}

BasicResult<std::shared_ptr<grpc::Channel>, std::string> OpenChannel(const DoctorOptions& options,
                                                                     const std::string& address,
                                                                     const std::string& service) {
  std::shared_ptr<grpc::ChannelCredentials> credentials = grpc::InsecureChannelCredentials();
  if (rpc::TlsIsOn(options.tls) && !address.starts_with("unix:")) {
    TRY(const auto files, rpc::TlsFiles::Open(options.tls));
    // The all-in-one's certificate has the names of auth and billing.
    credentials = files.ForClientOf(service == "allinone" ? "auth" : service);
  }
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_SERVICE_CONFIG_DISABLE_RESOLUTION, 1);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  rpc::KeepErrnoOfConnect();
  return grpc::CreateCustomChannel(address, credentials, arguments);
}

void PrepareCall(const DoctorOptions& options, grpc::ClientContext& context) {
  // Shorter than the check's timeout, so that the finding is that of the call.
  const auto deadline =
      std::chrono::system_clock::now() + std::chrono::milliseconds(options.timeout_ms * 3 / 4);
  context.set_deadline(deadline);
  context.AddMetadata(tollgate::admin::kOperatorKey, options.operator_name);
}

ClockReading ReadClock(int64_t theirs_us, int64_t asked_us, int64_t answered_us) {
  return {.ahead_us = theirs_us - (asked_us + answered_us) / 2,
          .uncertain_us = (answered_us - asked_us) / 2};
}

Finding ClockFinding(const std::string& subject, const ClockReading& reading) {
  const int64_t off = std::abs(reading.ahead_us);
  const std::string text = Duration(off) + (reading.ahead_us < 0 ? " behind" : " ahead of") +
                           " this machine's, give or take " + Duration(reading.uncertain_us);
  const char* advice = "set both clocks by a time server (chrony, systemd-timesyncd)";
  if (off > kMaxSkewUs + reading.uncertain_us) {
    return Failure(subject, "its clock is " + text, advice);
  }
  if (off > kFineSkewUs + reading.uncertain_us) {
    return Warning(subject, "its clock is " + text, advice);
  }
  return Ok(subject, "its clock is " + text);
}

bool OthersReach(const std::string& path) {
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0 || (status.st_mode & (S_IROTH | S_IWOTH)) == 0) {
    return false;
  }
  std::error_code failed;
  std::filesystem::path folder = std::filesystem::canonical(path, failed).parent_path();
  for (; !failed && folder.has_relative_path(); folder = folder.parent_path()) {
    if (::stat(folder.c_str(), &status) != 0 || (status.st_mode & S_IXOTH) == 0) return false;
  }
  return true;
}

std::string Duration(int64_t us) {
  if (us < 1000) return std::to_string(us) + " µs";
  if (us < 1'000'000) return std::to_string(us / 1000) + " ms";
  return WithOneDecimal(static_cast<double>(us) / 1e6, "s");
}

std::string Bytes(int64_t bytes) {
  const auto size = static_cast<double>(bytes);
  if (bytes >= int64_t{1} << 30) return WithOneDecimal(size / (1 << 30), "GiB");
  if (bytes >= int64_t{1} << 20) return WithOneDecimal(size / (1 << 20), "MiB");
  return WithOneDecimal(size / 1024, "KiB");
}

}  // namespace tollgate::cli
