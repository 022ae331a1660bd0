#include "common/host/library_lines.h"

#include <absl/base/internal/raw_logging.h>
#include <google/protobuf/stubs/logging.h>
#include <grpc/support/log.h>

#include <cstring>
#include <string>
#include <string_view>

#include "common/observability/log.h"

namespace tollgate::host {
namespace {

void WriteLine(std::string_view library, log::Level level, const char* file, int line,
               std::string_view message) {
  if (!log::Enabled(level)) return;
  const char* slash = std::strrchr(file, '/');
  const std::string source =
      std::string(slash == nullptr ? file : slash + 1) + ":" + std::to_string(line);
  log::Write(level, message, {{"library", library}, {"source", source}});
}

void OnGrpcLine(gpr_log_func_args* args) {
  const log::Level level = args->severity == GPR_LOG_SEVERITY_ERROR  ? log::Level::kError
                           : args->severity == GPR_LOG_SEVERITY_INFO ? log::Level::kInfo
                                                                     : log::Level::kDebug;
  // gRPC logs it for every TLS connection: our certificates name services, not hosts
  // (common/rpc/tls.h).
  if (std::string_view(args->message).starts_with("No match found for server name")) {
    return WriteLine("grpc", log::Level::kDebug, args->file, args->line, args->message);
  }
  WriteLine("grpc", level, args->file, args->line, args->message);
}

void OnProtobufLine(google::protobuf::LogLevel severity, const char* file, int line,
                    const std::string& message) {
  const log::Level level = severity == google::protobuf::LOGLEVEL_INFO      ? log::Level::kInfo
                           : severity == google::protobuf::LOGLEVEL_WARNING ? log::Level::kWarn
                                                                            : log::Level::kError;
  WriteLine("protobuf", level, file, line, message);
}

void OnAbseilLine(absl::LogSeverity severity, const char* file, int line,
                  const std::string& message) {
  const log::Level level = severity == absl::LogSeverity::kInfo      ? log::Level::kInfo
                           : severity == absl::LogSeverity::kWarning ? log::Level::kWarn
                                                                     : log::Level::kError;
  WriteLine("abseil", level, file, line, message);
}

}  // namespace

void LogLibraryLines() {
  gpr_set_log_function(OnGrpcLine);
  google::protobuf::SetLogHandler(OnProtobufLine);
  // The log of this Abseil version for code that may allocate. Its raw lines, written before it
  // aborts within an allocation, are not converted.
  absl::raw_logging_internal::RegisterInternalLogFunction(OnAbseilLine);
}

}  // namespace tollgate::host
