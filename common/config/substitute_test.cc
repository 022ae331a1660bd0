// Substitution as configuration files use it, through LoadText and LoadFile.
#include "common/config/substitute.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "common/config/config.h"
#include "common/config/testing/temp_folder.h"
#include "tollgate/config/v1/config.pb.h"

namespace tollgate::config {
namespace {

using testing::TempFolder;
using tollgate::config::v1::AllInOneConfig;

// Returns the error of loading the text as an AllInOneConfig; "" if it is valid.
std::string SubstituteErrorOf(const std::string& text) {
  AllInOneConfig config;
  const auto loaded = LoadText(text, "t.yaml", ".", config);
  return loaded.ok() ? "" : loaded.error();
}

TEST(Substitution, EnvironmentWithAndWithoutDefault) {
  ::setenv("TOLLGATE_CONFIG_TEST_SET", "8", 1);
  ::setenv("TOLLGATE_CONFIG_TEST_EMPTY", "", 1);
  ::unsetenv("TOLLGATE_CONFIG_TEST_UNSET");
  AllInOneConfig config;
  const auto loaded = LoadText(
      "host:\n  threads: ${env:TOLLGATE_CONFIG_TEST_SET}\n  ops_listen: "
      "a${env:TOLLGATE_CONFIG_TEST_UNSET:-b:1}c\n"
      "  log_level: ${env:TOLLGATE_CONFIG_TEST_EMPTY:-info}\n  grpc_listen: $${env:X}\n",
      "t.yaml", ".", config);
  ASSERT_TRUE(loaded.ok()) << loaded.error();
  EXPECT_EQ(config.host().threads(), 8);
  EXPECT_EQ(config.host().ops_listen(), "ab:1c");
  EXPECT_EQ(config.host().log_level(), "info");
  EXPECT_EQ(config.host().grpc_listen(), "${env:X}");
  EXPECT_EQ(SubstituteErrorOf("host: {log_level: \"${env:TOLLGATE_CONFIG_TEST_UNSET}\"}"),
            "t.yaml:1:19: environment variable TOLLGATE_CONFIG_TEST_UNSET is not set (write "
            "${env:TOLLGATE_CONFIG_TEST_UNSET:-default} for a default)");
  EXPECT_NE(SubstituteErrorOf("host: {log_level: \"${other:x}\"}").find("env: or file:"),
            std::string::npos);
  EXPECT_NE(SubstituteErrorOf("host: {log_level: \"${env:x\"}").find("no closing"),
            std::string::npos);
}

TEST(Substitution, FilesAreRelativeToTheConfigurationAndLoseOneLineBreak) {
  TempFolder folder;
  folder.Write("pepper", "first\nsecond\n");
  const std::string path = folder.Write("a.yaml", "auth:\n  pepper: ${file:pepper}\n");
  AllInOneConfig config;
  const auto loaded = LoadFile(path, config);
  ASSERT_TRUE(loaded.ok()) << loaded.error();
  EXPECT_EQ(config.auth().pepper(), "first\nsecond");
}

TEST(Substitution, ErrorsNeverContainValues) {
  TempFolder folder;
  folder.Write("secret", "hunter2\xFF\n");
  ::setenv("TOLLGATE_CONFIG_TEST_SECRET", "hunter2", 1);
  for (const char* text : {"host: {threads: \"${file:secret}\"}",
                           "host: {threads: \"${env:TOLLGATE_CONFIG_TEST_SECRET}\"}",
                           "auth: {pepper: \"${file:secret}\"}", "host: {threads: hunter2}"}) {
    AllInOneConfig config;
    const auto loaded = LoadText(text, "t.yaml", folder.path(), config);
    ASSERT_FALSE(loaded.ok()) << text;
    EXPECT_EQ(loaded.error().find("hunter2"), std::string::npos) << loaded.error();
  }
}

}  // namespace
}  // namespace tollgate::config
