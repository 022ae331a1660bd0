// A secret at a wrong place of a configuration, or in an unusable form, is not in the error:
// operators pass errors on, and logs keep them.
#include <gtest/gtest.h>

#include "tests/secrets/canaries.h"
#include "tests/support/process.h"

namespace tollgate::test {
namespace {

constexpr char kSecret[] = "canary/secret:hunter2@with#odd%signs";

struct Case {
  const char* binary;
  std::string section;  // lines below "host:"
};

std::vector<Case> Cases() {
  const std::string quoted = std::string("\"") + kSecret + "\"";
  std::vector<Case> cases;
  const auto auth = [&](const std::string& lines) {
    cases.push_back({"tollgate-auth", "auth:\n" + lines});
  };
  const std::string sql = "  sql: {url: \"sqlite:/dev/null/at/all.db\"}\n";
  // Secrets at wrong places and with wrong types.
  auth("  pepper: [" + quoted + "]\n" + sql);
  auth("  pepper: {" + quoted + ": 1}\n" + sql);
  auth("  " + quoted + ": pepper\n" + sql);
  auth("  sql: " + quoted + "\n");
  auth("  vouch_seconds: " + quoted + "\n" + sql);
  auth("  people: " + quoted + "\n" + sql);
  auth("  retired_peppers: [" + quoted + "]\n" + sql);
  auth("  pepper: " + quoted + "\n  pepper: " + quoted + "\n" + sql);
  // Text that is not YAML, or that YAML reads as something else.
  auth("  pepper: *" + std::string("canary_secret_hunter2_with_odd_signs\n") + sql);
  auth("  pepper: !<" + std::string("canary_secret_hunter2_with_odd_signs> x: y\n") + sql);
  auth("  pepper: \"" + std::string(kSecret) + "\n" + sql);
  auth("  pepper: " + std::string("%canary_secret_hunter2_with_odd_signs: \"\n"));
  auth("  pepper: ${canary_secret_hunter2_with_odd_signs}\n" + sql);
  auth("  pepper: ${file:/nowhere}" + std::string(kSecret) + "\n" + sql);
  // A pepper that is too short, and a database that cannot be opened.
  auth("  pepper: \"canary/secret:hunter2\"\n" + sql);
  auth("  pepper: " + quoted + "\n" + sql);
  for (const char* url : {
           // The special characters of the password are not percent-encoded.
           "postgresql://user:canary/secret:hunter2@with#odd%signs@127.0.0.1:1/db",
           "postgresql://user:canary_secret_hunter2_with_odd_signs",
           "postgresql://user:x@canary_secret_hunter2_with_odd_signs@127.0.0.1:1/db",
           "postgresql://user:x@127.0.0.1:canary_secret_hunter2_with_odd_signs/db",
           "postgresql://user:canary_secret_hunter2_with_odd_signs%zz@127.0.0.1:1/db",
           "postgresql://user:canary_secret_hunter2_with_odd_signs@[127.0.0.1:1/db",
           "postgresql://127.0.0.1:1/db?passwrd=canary_secret_hunter2_with_odd_signs",
           "postgresql://127.0.0.1:1/db?canary_secret_hunter2_with_odd_signs",
           "postgresql://user:canary_secret_hunter2_with_odd_signs@127.0.0.1:1/db",
           "postgres:user=a password=canary_secret_hunter2_with_odd_signs",
           "mysql://user:canary_secret_hunter2_with_odd_signs@127.0.0.1:1/db",
       }) {
    const std::string line = "  sql: {url: \"" + std::string(url) + "\"}\n";
    auth("  pepper: " + quoted + "\n" + line);
    cases.push_back({"tollgate-billing", "billing:\n" + line});
  }
  for (const char* url : {"redis://:canary_secret_hunter2_with_odd_signs@127.0.0.1:1",
                          "redis://127.0.0.1:canary_secret_hunter2",
                          "rediss://user:canary_secret_hunter2_with_odd_signs@127.0.0.1:1/x",
                          "canary_secret_hunter2_with_odd_signs"}) {
    cases.push_back(
        {"tollgate-ratelimit", std::string("ratelimit: {redis_url: \"") + url + "\"}\n"});
  }
  cases.push_back({"tollgate-billing",
                   "billing:\n  sql: {url: \"sqlite:/dev/null/at/all.db\"}\n  alerts: {smtp_url: " +
                       quoted + "}\n"});
  cases.push_back(
      {"tollgate-billing",
       "billing:\n  sql: {url: \"sqlite:/dev/null/at/all.db\"}\n  payments: {provider: " + quoted +
           "}\n"});
  cases.push_back({"tollgate-inference-router",
                   "router: {data_dir: /dev/null/at/all, cache_salt_key: \"canary/secret\"}\n"});
  cases.push_back({"tollgate-dashboard", "dashboard: {login_token: \"canary/secret\"}\n"});
  return cases;
}

TEST(BadConfig, AnErrorNamesTheFieldAndNotWhatWasInIt) {
  TempDir folder;
  Canaries canaries;
  for (const char* part : {"canary/secret", "canary_secret", "hunter2", "with_odd", "odd%signs"}) {
    ASSERT_TRUE(canaries.Add("secret", part) || std::string(part).size() < 8);
  }
  int number = 0;
  for (const Case& at : Cases()) {
    const std::string stem = folder.path() + "/" + std::to_string(++number);
    WriteFile(stem + ".yaml",
              "host: {log_level: debug, insecure_plaintext: true, ops_listen: \"127.0.0.1:0\", "
              "grpc_listen: \"127.0.0.1:0\"}\n" +
                  at.section);
    Process process(at.binary, {BinaryPath(at.binary), "--config", stem + ".yaml"}, stem + ".log");
    ASSERT_TRUE(process.Start());
    // The process waits for an unreachable database.
    const bool ended = WaitUntil(
        [&] { return !process.Running() || process.LogTail().find("onnect") != std::string::npos; },
        20'000, 20);
    EXPECT_TRUE(ended) << at.section << process.LogTail();
    process.Kill();
    const std::string log = ReadFile(stem + ".log");
    EXPECT_FALSE(log.empty()) << at.section;
    EXPECT_EQ(log.find("An unexpected error occurred"), std::string::npos)
        << "a text for clients of the API is around the cause:\n"
        << log;
    for (const std::string& found : canaries.FindIn(at.section, log)) ADD_FAILURE() << found;
  }
}

}  // namespace
}  // namespace tollgate::test
