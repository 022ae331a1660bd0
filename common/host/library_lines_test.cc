#include "common/host/library_lines.h"

#include <absl/base/internal/raw_logging.h>
#include <google/protobuf/stubs/logging.h>
#include <grpc/support/log.h>
#include <gtest/gtest.h>

#include <string>

namespace tollgate::host {
namespace {

TEST(LogLibraryLines, LinesOfLibrariesAreJsonAndRedacted) {
  LogLibraryLines();
  gpr_set_log_verbosity(GPR_LOG_SEVERITY_ERROR);  // as gRPC does when it starts
  testing::internal::CaptureStderr();
  gpr_log("src/core/thing.cc", 12, GPR_LOG_SEVERITY_ERROR, "lost %d sk-tollgate-canary123", 3);
  GOOGLE_LOG(WARNING) << "not UTF-8";
  ABSL_INTERNAL_LOG(ERROR, std::string("odd"));
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_NE(text.find("\"level\":\"error\",\"process\":\"tollgate\",\"message\":\"lost 3 "
                      "sk-[redacted]\",\"library\":\"grpc\",\"source\":\"thing.cc:12\"}\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("\"level\":\"warn\",\"process\":\"tollgate\",\"message\":\"not UTF-8\","
                      "\"library\":\"protobuf\""),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("\"message\":\"odd\",\"library\":\"abseil\""), std::string::npos) << text;
  EXPECT_EQ(text.find("canary123"), std::string::npos);
}

}  // namespace
}  // namespace tollgate::host
