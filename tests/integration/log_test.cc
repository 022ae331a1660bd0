// The log of a whole process: a slow reader does not block the process, and the log has no
// credential.
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sstream>
#include <thread>

#include "tests/integration/system_test.h"

namespace tollgate::test {
namespace {

struct LoggedSystem {
  explicit LoggedSystem(ClusterOptions options) {
    std::string error;
    EXPECT_TRUE(engine.Start(&error)) << error;
    options.catalog = DefaultCatalog({engine.base_url()});
    cluster = std::make_unique<Cluster>(std::move(options));
  }
  EngineSim engine{EngineSimOptions{}};
  std::unique_ptr<Cluster> cluster;
};

// A named pipe as standard error of the process; the test has its reading end. (Standard output
// goes to the file of the cluster.)
class StderrPipe {
 public:
  StderrPipe() : path_(dir_.path() + "/stderr") {
    EXPECT_EQ(mkfifo(path_.c_str(), 0600), 0);
    fd_ = open(path_.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    EXPECT_GE(fd_, 0);
  }
  ~StderrPipe() { close(fd_); }
  std::vector<std::string> Wrapper() const {
    return {"/bin/sh", "-c", "exec \"$@\" 2>\"$0\"", path_};
  }
  // Reads until the last writer has closed the pipe.
  std::string ReadAll() const {
    std::string text;
    char buffer[65536];
    for (;;) {
      pollfd ready{fd_, POLLIN, 0};
      if (poll(&ready, 1, 20'000) <= 0) return text + "(no end)";
      const ssize_t count = read(fd_, buffer, sizeof buffer);
      if (count <= 0) return text;
      text.append(buffer, static_cast<size_t>(count));
    }
  }

 private:
  TempDir dir_;
  std::string path_;
  int fd_ = -1;
};

constexpr int kRequests = 1'200;  // a log line of each has more than 250 bytes

int AnsweredOf(Cluster& cluster, int requests) {
  HttpConnection connection(cluster.port(), 3'000);
  int answered = 0;
  for (int i = 0; i < requests; ++i) {
    answered += connection.Request("GET", "/v1/models").status == 200;
    if (answered <= i) break;
  }
  return answered;
}

int64_t DroppedMetric(Cluster& cluster) {
  const std::string name = "\ntollgate_log_lines_dropped_total ";
  const std::string text =
      Http(cluster.admin_port("allinone"), "GET", "/metrics", {}, "", 3'000).body;
  const size_t at = text.find(name);
  return at == std::string::npos ? -1 : std::atoll(text.c_str() + at + name.size());
}

TEST(Log, RequestsAreAnsweredWhileNobodyReadsTheLog) {
  StderrPipe pipe;
  ClusterOptions options;
  options.host_settings = {"log_queue_bytes: 65536"};
  options.wrapper = pipe.Wrapper();
  LoggedSystem logged(options);
  Cluster& cluster = *logged.cluster;
  ASSERT_EQ(cluster.Start(), "");
  EXPECT_EQ(AnsweredOf(cluster, kRequests), kRequests);
  EXPECT_GT(DroppedMetric(cluster), 0);

  // The reader resumes while the process stops: it gets whole lines, the number of dropped lines,
  // and the last line.
  std::string text;
  std::thread reader([&] { text = pipe.ReadAll(); });
  EXPECT_EQ(cluster.StopOrderly(), "");
  reader.join();
  int64_t requests = 0;
  int64_t dropped = 0;
  std::string last;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line); last = line) {
    const Json record = Json::Parse(line).value_or(Json());
    ASSERT_TRUE(record.is_object()) << line;
    requests += record["message"].str() == "request" && record["endpoint"].str() == "models";
    if (record["message"].str() == "log lines dropped") dropped += record["lines"].integer();
  }
  EXPECT_GT(requests, 100);
  EXPECT_LT(requests, kRequests);
  EXPECT_GE(requests + dropped, kRequests);
  EXPECT_NE(last.find("\"stopped\""), std::string::npos) << last;
}

TEST(Log, AProcessStopsWhileNobodyReadsTheLog) {
  StderrPipe pipe;
  ClusterOptions options;
  options.host_settings = {"log_queue_bytes: 65536"};
  options.wrapper = pipe.Wrapper();
  LoggedSystem logged(options);
  ASSERT_EQ(logged.cluster->Start(), "");
  EXPECT_EQ(AnsweredOf(*logged.cluster, kRequests), kRequests);
  EXPECT_EQ(logged.cluster->StopOrderly(), "");
}

TEST(Log, EveryLineOfAnOrderlyLifeIsWritten) {
  LoggedSystem logged(ClusterOptions{});
  ASSERT_EQ(logged.cluster->Start(), "");
  EXPECT_EQ(AnsweredOf(*logged.cluster, kRequests), kRequests);
  EXPECT_EQ(logged.cluster->StopOrderly(), "");
  std::istringstream lines(ReadFile(logged.cluster->dir() + "/allinone.log"));
  int requests = 0;
  std::string last;
  for (std::string line; std::getline(lines, line); last = line) {
    requests += line.find("\"endpoint\":\"models\"") != std::string::npos;
  }
  EXPECT_EQ(requests, kRequests);
  EXPECT_NE(last.find("\"stopped\""), std::string::npos) << last;
}

// docs/design/keys.md 11. The canary is in every place of a request from which text could reach a
// log.
class CanaryTest : public ::testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Systems, CanaryTest, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "allinone" : "tcp"; });

TEST_P(CanaryTest, NoKeyIsInAnyLog) {
  ClusterOptions options;
  options.all_in_one = GetParam();
  options.log_level = "debug";
  options.gateway_settings = {"legacy_key_prefixes: [oldbrand_, 'acme.']"};
  LoggedSystem logged(options);
  Cluster& cluster = *logged.cluster;
  ASSERT_EQ(cluster.Start(), "");
  const ApiKey key = cluster.NewCustomer(kUsd);
  EXPECT_EQ(cluster.Post(key, kChat, ChatBody()).status, 200);
  const std::string canary = "CANARYcanary0123456789";
  for (const std::string& prefix : {std::string("sk-tollgate-"), std::string("oldbrand_"),
                                    std::string("acme."), std::string("ACME.")}) {
    const std::string secret = prefix + canary;
    HeaderList headers = {{"Authorization", "Bearer " + secret},
                          {"x-api-key", secret},
                          {"x-request-id", secret},
                          {"User-Agent", secret}};
    EXPECT_EQ(Http(cluster.port(), "POST", kChat, headers, ChatBody("", secret)).status, 401);
    headers[0].second = "Bearer " + key.secret;
    EXPECT_EQ(Http(cluster.port(), "POST", kChat, headers, ChatBody("", secret)).status, 404);
    EXPECT_EQ(Http(cluster.port(), "GET", "/v1/" + secret + "?key=" + secret, headers).status, 404);
    const std::string fault =
        ",\"x_sim\":{\"status\":400,\"error_body\":{\"error\":\"" + secret + "\"}}";
    EXPECT_EQ(Http(cluster.port(), "POST", kChat, headers, ChatBody(fault)).status, 400);
  }
  EXPECT_EQ(cluster.StopOrderly(), "");
  std::string logs;
  for (const std::string& name : cluster.process_names()) {
    logs += ReadFile(cluster.dir() + "/" + name + ".log");
  }
  EXPECT_NE(logs.find("\"endpoint\":\"chat_completions\""), std::string::npos);
  EXPECT_NE(logs.find("oldbrand_[redacted]"), std::string::npos);
  EXPECT_EQ(logs.find("CANARY"), std::string::npos) << logs.substr(logs.find("CANARY"), 300);
  EXPECT_EQ(logs.find(key.secret.substr(key.secret.size() - 20)), std::string::npos);
}

}  // namespace
}  // namespace tollgate::test
