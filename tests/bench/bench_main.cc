// tollgate-bench: one run of the load generator against one address; prints one JSON object.
// tests/bench/run runs it against every peer of the comparison.
#include <getopt.h>
#include <sys/resource.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>

#include "tests/bench/load.h"

namespace {

using tollgate::bench::Histogram;
using tollgate::bench::LoadOptions;
using tollgate::bench::LoadReport;
using tollgate::bench::Mode;

constexpr char kUsage[] =
    R"(tollgate-bench: load generator, streaming aware; prints one JSON object (times in microseconds)

  --port N               on 127.0.0.1
  --path P               default /v1/chat/completions
  --header 'Name: value' may be given several times
  --keys FILE            API keys, a line each, that requests have in turn
  --body-file FILE       the request's JSON body
  --mode M               closed (default), open or streams
  --connections N        default 32; with open: the maximum at a time
  --rate R               requests per second, open
  --warmup-ms N          default 500
  --window-ms N          default 3000: the measurement window
  --pids A,B,…           processes whose CPU time and memory are sampled
)";

struct Flags {
  LoadOptions load;
  std::string path = "/v1/chat/completions";
  std::string headers;
  std::string body;
  std::vector<std::string> keys;
};

std::string ReadFile(const char* path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    std::fprintf(stderr, "tollgate-bench: cannot read %s\n", path);
    std::exit(2);
  }
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

Mode ModeOf(const std::string& name) {
  if (name == "open") return Mode::kOpen;
  if (name == "streams") return Mode::kStreams;
  return Mode::kClosed;
}

Flags Read(int argc, char** argv) {
  static const option kOptions[] = {
      {"port", 1, nullptr, 'p'},      {"path", 1, nullptr, 'P'},
      {"header", 1, nullptr, 'H'},    {"body-file", 1, nullptr, 'b'},
      {"mode", 1, nullptr, 'm'},      {"connections", 1, nullptr, 'c'},
      {"rate", 1, nullptr, 'r'},      {"warmup-ms", 1, nullptr, 'u'},
      {"window-ms", 1, nullptr, 'w'}, {"pids", 1, nullptr, 'i'},
      {"keys", 1, nullptr, 'k'},      {"help", 0, nullptr, 'h'},
      {nullptr, 0, nullptr, 0}};
  Flags flags;
  for (int option; (option = getopt_long(argc, argv, "", kOptions, nullptr)) != -1;) {
    switch (option) {
      case 'p':
        flags.load.port = std::atoi(optarg);
        break;
      case 'P':
        flags.path = optarg;
        break;
      case 'H':
        flags.headers += std::string(optarg) + "\r\n";
        break;
      case 'b':
        flags.body = ReadFile(optarg);
        break;
      case 'k': {
        std::istringstream lines(ReadFile(optarg));
        for (std::string key; std::getline(lines, key);) flags.keys.push_back(key);
        break;
      }
      case 'm':
        flags.load.mode = ModeOf(optarg);
        break;
      case 'c':
        flags.load.connections = std::atoi(optarg);
        break;
      case 'r':
        flags.load.rate = std::atof(optarg);
        break;
      case 'u':
        flags.load.warmup_ms = std::atoll(optarg);
        break;
      case 'w':
        flags.load.window_ms = std::atoll(optarg);
        break;
      case 'i': {
        std::istringstream list(optarg);
        for (std::string pid; std::getline(list, pid, ',');)
          flags.load.pids.push_back(std::atoi(pid.c_str()));
        break;
      }
      default:
        std::fputs(kUsage, option == 'h' ? stdout : stderr);
        std::exit(option == 'h' ? 0 : 2);
    }
  }
  const std::string head =
      "POST " + flags.path + " HTTP/1.1\r\nHost: 127.0.0.1:" + std::to_string(flags.load.port) +
      "\r\nContent-Type: application/json\r\nUser-Agent: tollgate-bench\r\n" + flags.headers;
  const std::string rest =
      "Content-Length: " + std::to_string(flags.body.size()) + "\r\n\r\n" + flags.body;
  for (const std::string& key : flags.keys) {
    flags.load.requests.push_back(head + "Authorization: Bearer " + key + "\r\n" + rest);
  }
  if (flags.keys.empty()) flags.load.requests = {head + rest};
  return flags;
}

void PrintHistogram(const char* name, const Histogram& histogram) {
  std::printf(
      ",\"%s\":{\"count\":%lld,\"mean\":%.1f,\"p50\":%lld,\"p90\":%lld,\"p99\":%lld,\"p999\":%lld,"
      "\"max\":%lld}",
      name, static_cast<long long>(histogram.count()), histogram.mean(),
      static_cast<long long>(histogram.Percentile(0.5)),
      static_cast<long long>(histogram.Percentile(0.9)),
      static_cast<long long>(histogram.Percentile(0.99)),
      static_cast<long long>(histogram.Percentile(0.999)), static_cast<long long>(histogram.max()));
}

}  // namespace

int main(int argc, char** argv) {
  const Flags flags = Read(argc, argv);
  rlimit files{};
  if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
  }
  const LoadReport report = tollgate::bench::RunLoad(flags.load);
  std::printf(
      "{\"seconds\":%.3f,\"requests\":%lld,\"errors\":%lld,\"late\":%lld,\"events\":%lld,\"bytes\":"
      "%lld",
      report.seconds, static_cast<long long>(report.requests),
      static_cast<long long>(report.errors), static_cast<long long>(report.late),
      static_cast<long long>(report.events), static_cast<long long>(report.bytes));
  std::printf(",\"cpu_us\":%lld,\"rss_before\":%lld,\"rss_after\":%lld,\"open_at_end\":%lld",
              static_cast<long long>(report.cpu_us), static_cast<long long>(report.rss_before),
              static_cast<long long>(report.rss_after), static_cast<long long>(report.open_at_end));
  PrintHistogram("latency", report.latency);
  PrintHistogram("first_token", report.first_token);
  PrintHistogram("gap", report.gap);
  std::string why;
  for (const char c : report.first_error) why += c == '"' || c == '\\' ? '\'' : c;
  std::printf(",\"first_error\":\"%s\"}\n", why.c_str());
  return 0;
}
