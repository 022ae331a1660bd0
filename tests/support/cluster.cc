#include "tests/support/cluster.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "tests/support/cluster_member.h"

namespace tollgate::test {
namespace {

// Name of the i-th replica, from 1.
std::string Numbered(const std::string& name, int i) {
  return name + (i == 1 ? std::string() : "-" + std::to_string(i));
}
// Tests run again in other modes of asking engines (tollgate_tests_in_mode): "streamed" streams
// every answer; "whole" makes holds and bounds large enough that an answer is streamed only when
// its caller streams.
constexpr int64_t kWholeTokens = 131'072;
std::string_view EngineMode() {
  const char* mode = std::getenv("TOLLGATE_ENGINE_MODE");
  return mode == nullptr ? "" : mode;
}
int64_t UnstreamedMaxTokens() {
  if (EnginesAlwaysStream()) return -1;
  return EngineMode() == "whole" ? kWholeTokens : 0;
}

std::string RouterName(int i) { return Numbered("inference-router", i); }
bool IsBilling(const std::string& name) { return name.starts_with("billing"); }
bool IsAuth(const std::string& name) { return name.starts_with("auth"); }
bool IsCatalog(const std::string& name) { return name.starts_with("catalog"); }
bool IsRouter(const std::string& name) { return name.starts_with("inference-router"); }
bool IsGateway(const std::string& name) { return name.starts_with("gateway"); }
bool IsRateLimit(const std::string& name) { return name.starts_with("ratelimit"); }
// The number of a replica, from 0.
size_t PlaceOf(const std::string& name) {
  const size_t dash = name.rfind('-');
  const int number = dash == std::string::npos ? 0 : std::atoi(name.c_str() + dash + 1);
  return number > 1 ? static_cast<size_t>(number - 1) : 0;
}

std::string Or(const std::string& value, const std::string& otherwise) {
  return value.empty() ? otherwise : value;
}

std::string Setting(const char* name, int64_t value) {
  return value == 0 ? "" : std::string("  ") + name + ": " + std::to_string(value) + "\n";
}

std::string Lines(const std::vector<std::string>& settings) {
  std::string text;
  for (const std::string& setting : settings) text += "  " + setting + "\n";
  return text;
}

}  // namespace

bool EnginesAlwaysStream() { return EngineMode() == "streamed"; }
bool WholeAnswers() { return EngineMode() == "whole"; }

int PortOf(const std::string& address) {
  const size_t colon = address.rfind(':');
  return colon == std::string::npos ? 0 : std::atoi(address.c_str() + colon + 1);
}

std::string DefaultCatalog(const std::vector<std::string>& engine_urls,
                           const std::string& input_price, const std::string& output_price,
                           int64_t engine_concurrency) {
  auto model = [&](const std::string& id, const std::string& capabilities,
                   const std::string& more) {
    return "  - id: " + id +
           "\n    name: Simulated\n    context_window: 131072\n    max_output_tokens: 65536\n" +
           "    input_usd_per_million: \"" + input_price + "\"\n    output_usd_per_million: \"" +
           output_price + "\"\n    capabilities: [" + capabilities +
           "]\n    documentation_url: https://example.test/sim\n" +
           "    created: \"2026-01-02\"\n    engine_model: sim/model\n" + more;
  };
  std::string text = "models:\n";
  text += model("sim/model", "chat, tools, reasoning", "    pool: main\n");
  text += model("sim/text", "completion", "    pool: main\n");
  text += model("sim/vision", "chat, vision", "    pool: main\n");
  text += model("sim/suspended", "chat", "    pool: main\n    suspended: true\n");
  text += model("sim/empty", "chat", "    pool: unreachable\n");
  text += model("sim/private", "chat", "    pool: main\n    workspace: owner\n");
  text += model("sim/embed", "embedding", "    pool: main\n");
  text += model("sim/dual", "chat, embedding", "    pool: main\n");
  text += "pools:\n  - name: main\n    engines:\n";
  int number = 0;
  for (const std::string& url : engine_urls) {
    text += "      - id: sim-" + std::to_string(++number) +
            "\n        kind: vllm\n        base_url: " + url + "\n";
    if (engine_concurrency > 0)
      text += "        max_concurrency: " + std::to_string(engine_concurrency) + "\n";
  }
  // Port 1: connections are refused.
  text +=
      "  - name: unreachable\n    engines:\n      - id: down\n        kind: vllm\n        "
      "base_url: "
      "http://127.0.0.1:1\n";
  return text;
}

Cluster::Cluster(ClusterOptions options) : options_(std::move(options)) {
  http_ports_.resize(static_cast<size_t>(options_.gateways));
  http_listen_.resize(static_cast<size_t>(options_.gateways));
  WriteFile(dir_.path() + "/pepper", "a pepper for tests that is longer than 32 characters\n");
  WriteFile(dir_.path() + "/login_token", "login-token-for-tests\n");
  WriteCatalog(options_.catalog);
  if (options_.all_in_one) {
    Add("allinone", "tollgate-allinone", true);
    return;
  }
  for (int i = 1; i <= options_.ratelimits; ++i) {
    Add(Numbered("ratelimit", i), "tollgate-ratelimit", true);
  }
  for (int i = 1; i <= options_.billings; ++i) {
    Add(Numbered("billing", i), "tollgate-billing", true);
  }
  // Auth starts after the services that it calls: it opens wallets and copies audit entries.
  for (int i = 1; i <= options_.auths; ++i) Add(Numbered("auth", i), "tollgate-auth", true);
  for (int i = 1; i <= options_.catalogs; ++i) {
    Add(Numbered("catalog", i), "tollgate-catalog", true);
  }
  for (int i = 1; i <= options_.routers; ++i) {
    Add(RouterName(i), "tollgate-inference-router", true);
  }
  for (int i = 1; i <= options_.gateways; ++i) {
    Add(Numbered("gateway", i), "tollgate-gateway", true);
  }
  Add("dashboard", "tollgate-dashboard", false);
}

Cluster::~Cluster() = default;

void Cluster::Add(const std::string& name, const std::string& binary, bool has_grpc) {
  auto member = std::make_unique<Member>();
  member->name = name;
  member->binary = binary;
  member->has_grpc = has_grpc;
  member->has_admin_grpc = !IsGateway(name) && !IsRateLimit(name);
  std::vector<std::string> command = options_.wrapper;
  command.insert(command.end(),
                 {BinaryPath(binary), "--config", dir_.path() + "/" + name + ".yaml"});
  member->process = std::make_unique<Process>(name, command, dir_.path() + "/" + name + ".log");
  members_.push_back(std::move(member));
}

void Cluster::WriteCatalog(const std::string& text) {
  WriteFile(dir_.path() + "/models.yaml", text);
}

std::string Cluster::Host(const Member& member) const {
  return "host:\n  threads: " + std::to_string(options_.threads) +
         "\n  ops_listen: " + member.admin_port.address() +
         (member.has_grpc ? "\n  grpc_listen: " + member.grpc_port.address() : std::string()) +
         (member.has_admin_grpc
              ? "\n  admin_grpc_listen: \"" + member.admin_grpc_port.address() +
                    (options_.admin_sockets ? ",unix:" + dir_.path() + "/" + member.name + ".sock"
                                            : std::string()) +
                    "\""
              : std::string()) +
         "\n  address_file: " + dir_.path() + "/" + member.name + ".addresses" +
         "\n  log_level: " + options_.log_level +
         "\n  drain_seconds: " + std::to_string(options_.drain_seconds) + "\n" + Tls(member) +
         Lines(options_.host_settings);
}

std::string Cluster::Tls(const Member& member) const {
  if (options_.certificates.empty()) return "  insecure_plaintext: true\n";
  // "billing-2" uses the certificate of billing.
  const std::string service = member.binary.substr(std::string("tollgate-").size());
  const std::string folder = options_.certificates + "/" + service;
  return "  tls:\n    certificate_file: " + folder +
         "/certificate.pem\n    private_key_file: " + folder +
         "/private_key.pem\n    authority_file: " + options_.certificates + "/authority.pem\n";
}

std::string Cluster::AdminGrpcOf(const std::string& name) const {
  for (const auto& member : members_) {
    if (member->name == name || member->name == "allinone") return member->admin_grpc_address;
  }
  return "";
}

std::string Cluster::GrpcOf(const std::string& name) const {
  for (const auto& member : members_) {
    if (member->name == name || member->name == "allinone") return member->grpc_address;
  }
  return "";
}

std::string Cluster::Replicas(const std::string& service, int count) const {
  std::string addresses = GrpcOf(service);
  for (int i = 2; i <= count; ++i) addresses += "," + GrpcOf(Numbered(service, i));
  return addresses;
}

std::string Cluster::AdminBillings() const {
  std::string addresses = AdminGrpcOf("billing");
  for (int i = 2; i <= options_.billings; ++i)
    addresses += "," + AdminGrpcOf(Numbered("billing", i));
  return addresses;
}

std::string Cluster::Targets(const std::string& for_whom) const {
  std::string text = "targets:\n  billing: \"" + Replicas("billing", options_.billings) +
                     "\"\n  catalog: \"" + Replicas("catalog", options_.catalogs) + "\"\n";
  if (IsRouter(for_whom)) return text;
  text += "  auth_admin: " + AdminGrpcOf("auth") + "\n  billing_admin: " + AdminGrpcOf("billing") +
          "\n  catalog_admin: " + AdminGrpcOf("catalog") + "\n";
  text += "  auth: \"" + Replicas("auth", options_.auths) + "\"\n  ratelimit: \"" +
          Replicas("ratelimit", options_.ratelimits) + "\"\n  inference_routers:\n";
  for (int i = 1; i <= options_.routers; ++i) {
    const std::string address = GrpcOf(RouterName(i));
    const bool around = IsGateway(for_whom) && options_.way_to_router;
    text += "    - " + (around ? options_.way_to_router(address) : address) + "\n";
  }
  if (for_whom != "dashboard") return text;
  text += "  gateways: \"" + Replicas("gateway", options_.gateways) + "\"\n  router_admin:\n";
  for (int i = 1; i <= options_.routers; ++i) {
    text += "    - " + AdminGrpcOf(RouterName(i)) + "\n";
  }
  return text;
}

std::string Cluster::Section(const std::string& name) const {
  const std::string& dir = dir_.path();
  if (IsAuth(name)) {
    return "auth:\n  sql:\n    url: " + Or(options_.auth_sql, "sqlite:" + dir + "/auth.db") +
           "\n  pepper: ${file:" + dir + "/pepper}\n" + Lines(options_.auth_settings);
  }
  if (IsRateLimit(name)) {
    // With Redis the limiters keep no state of their own.
    const std::string state = "  state_file: " + dir + "/ratelimit.state\n";
    return "ratelimit:\n  lease_seconds: " + std::to_string(options_.lease_seconds) + "\n" +
           (options_.ratelimit_settings.empty() ? state : std::string()) +
           Lines(options_.ratelimit_settings);
  }
  if (IsCatalog(name)) return "catalog:\n  file: " + dir + "/models.yaml\n";
  if (IsBilling(name)) {
    return "billing:\n  sql:\n    url: " +
           Or(options_.billing_sql, "sqlite:" + dir + "/billing.db") + "\n" +
           Setting("hold_ttl_seconds", options_.hold_ttl_seconds) +
           Setting("second_person_above_usd", options_.second_person_above_usd) +
           Setting("slice_tokens", options_.slice_tokens == 0 && EngineMode() == "whole"
                                       ? kWholeTokens
                                       : options_.slice_tokens) +
           (options_.holds_before_disk ? "  holds_before_disk: true\n" : "") +
           Lines(options_.billing_settings);
  }
  if (name == "router" || IsRouter(name)) {
    const std::string folder =
        IsRouter(name) ? name.substr(std::string("inference-").size()) : name;
    return "router:\n  data_dir: " + dir + "/" + folder + "\n" +
           Setting("heartbeat_seconds", options_.heartbeat_seconds) +
           Setting("connect_timeout_seconds", options_.connect_timeout_seconds) +
           Setting("idle_timeout_seconds", options_.idle_timeout_seconds) +
           Setting("health_check_seconds", options_.health_check_seconds) +
           Setting("health_check_timeout_seconds", options_.health_check_timeout_seconds) +
           Setting("unstreamed_max_tokens", UnstreamedMaxTokens()) +
           // Engines of tests are new: without a measured pace long answers would be streamed.
           Setting("unstreamed_answer_seconds", 1'000'000) + Lines(options_.router_settings);
  }
  if (IsGateway(name)) {
    return "gateway:\n  listen: " + http_listen_[PlaceOf(name)].address() + "\n" +
           Setting("keep_alive_seconds", options_.keep_alive_seconds) +
           Lines(options_.gateway_settings);
  }
  return "dashboard:\n  listen: " + dashboard_listen_.address() + "\n  login_token: ${file:" + dir +
         "/login_token}\n" +
         (http_ports_[0] > 0
              ? "  gateway_url: http://127.0.0.1:" + std::to_string(http_ports_[0]) + "\n"
              : std::string()) +
         Lines(options_.dashboard_settings);
}

std::string Cluster::ConfigOf(const Member& member) const {
  std::string text = Host(member);
  if (member.name == "allinone") {
    for (const char* name :
         {"gateway", "auth", "ratelimit", "catalog", "billing", "router", "dashboard"}) {
      text += Section(name);
    }
    if (options_.grpc_in_process) {
      text += "targets:\n";
      for (const char* name : {"auth", "ratelimit", "billing", "catalog"}) {
        text += std::string("  ") + name + ": \"inproc:\"\n";
      }
      text += "  inference_routers: [\"inproc:\"]\n";
    }
    return text;
  }
  if (IsRouter(member.name)) return text + Targets(member.name) + Section(member.name);
  if (IsAuth(member.name)) {
    text += "targets:\n  billing_admin: \"" + AdminBillings() + "\"\n  ratelimit: \"" +
            Replicas("ratelimit", options_.ratelimits) + "\"\n";
  }
  if (IsGateway(member.name) || member.name == "dashboard") text += Targets(member.name);
  return text + Section(member.name);
}

bool Cluster::ReadAddresses(Member& member) {
  const std::optional<Json> addresses =
      Json::Parse(ReadFile(dir_.path() + "/" + member.name + ".addresses"));
  if (!addresses || !addresses->is_object()) return false;
  member.admin_address = (*addresses)["admin"].str();
  member.grpc_address = (*addresses)["grpc"].str();
  member.admin_grpc_address = (*addresses)["admin_grpc"].str();
  member.http_address = (*addresses)["http"].str();
  member.dashboard_address = (*addresses)["dashboard"].str();
  if (member.name == "dashboard" && member.dashboard_address.empty())
    member.dashboard_address = member.http_address;
  if (member.name != "dashboard" && !member.http_address.empty())
    http_ports_[PlaceOf(member.name)] = PortOf(member.http_address);
  if (!member.dashboard_address.empty()) dashboard_port_ = PortOf(member.dashboard_address);
  return !member.admin_address.empty();
}

std::string Cluster::StartMember(Member& member, int64_t deadline_us) {
  const std::string config = dir_.path() + "/" + member.name + ".yaml";
  WriteFile(config, ConfigOf(member));
  std::error_code ignored;
  std::filesystem::remove(dir_.path() + "/" + member.name + ".addresses", ignored);
  if (!BinaryExists(member.binary)) return member.binary + " is not built";
  if (!member.process->Start()) return member.name + ": cannot be started";
  bool ended = false;
  const bool bound = Within(
      [&] {
        ended = !member.process->Running();
        return ended || ReadAddresses(member);
      },
      (deadline_us - MonotonicUs()) / 1000);
  if (ended || !bound) {
    return member.name +
           (ended ? ": ended with " + std::to_string(member.process->exit_code())
                  : ": no address file") +
           "\n" + member.process->LogTail();
  }
  return "";
}

std::string Cluster::Start(int64_t timeout_ms) {
  const int64_t deadline_us = MonotonicUs() + timeout_ms * 1000;
  for (const auto& member : members_) {
    if (std::string error = StartMember(*member, deadline_us); !error.empty()) return error;
  }
  return ReadyWithin((deadline_us - MonotonicUs()) / 1000);
}

std::string Cluster::ReadyWithin(int64_t limit_ms) {
  const int64_t deadline_us = MonotonicUs() + limit_ms * 1000;
  for (const auto& member : members_) {
    HttpResponse last;
    const bool ready = Within(
        [&] {
          last = Http(PortOf(member->admin_address), "GET", "/readyz", {}, "", 1000);
          return last.status == 200 || !member->process->Running();
        },
        (deadline_us - MonotonicUs()) / 1000);
    if (!ready || last.status != 200) {
      return member->name + " is not ready: " + std::to_string(last.status) + " " + last.body +
             "\n" + Logs();
    }
  }
  return "";
}

std::string Cluster::Restart(const std::vector<std::string>& names, int64_t timeout_ms) {
  const int64_t deadline_us = MonotonicUs() + timeout_ms * 1000;
  for (const auto& member : members_) {
    if (std::find(names.begin(), names.end(), member->name) == names.end()) continue;
    if (std::string crash = member->process->Crash(); !crash.empty()) return crash;
    member->process->Kill();
    if (std::string error = StartMember(*member, deadline_us); !error.empty()) return error;
  }
  return ReadyWithin((deadline_us - MonotonicUs()) / 1000);
}

std::string Cluster::StopOrderly() {
  std::string wrong;
  const bool keeps = std::getenv("TOLLGATE_TEST_LOGS") != nullptr;
  for (size_t i = members_.size(); i-- > 0;) {
    Process& process = *members_[i]->process;
    if (keeps && process.Running()) {  // for the search of tests/secrets
      WriteFile(dir_.path() + "/" + members_[i]->name + ".metrics",
                Http(PortOf(members_[i]->admin_address), "GET", "/metrics", {}, "", 2'000).body);
    }
    const int code = process.Terminate();
    if (const std::string crash = process.Crash(); !crash.empty())
      wrong += crash;
    else if (code != 0)
      wrong += members_[i]->name + " ended with " + std::to_string(code) + "\n" + process.LogTail();
  }
  return wrong;
}

std::string Cluster::Crashes() {
  std::string crashes;
  for (const auto& member : members_) crashes += member->process->Crash();
  return crashes;
}

std::vector<std::string> Cluster::process_names() const {
  std::vector<std::string> names;
  for (const auto& member : members_) names.push_back(member->name);
  return names;
}

Process& Cluster::process(const std::string& name) {
  for (const auto& member : members_) {
    if (member->name == name) return *member->process;
  }
  return *members_.front()->process;
}

int Cluster::admin_port(const std::string& name) const {
  for (const auto& member : members_) {
    if (member->name == name) return PortOf(member->admin_address);
  }
  return 0;
}

std::vector<pid_t> Cluster::pids() {
  std::vector<pid_t> pids;
  for (const auto& member : members_) {
    if (member->process->Running()) pids.push_back(member->process->pid());
  }
  return pids;
}

std::string Cluster::Logs() {
  std::string logs;
  for (const auto& member : members_)
    logs += "== " + member->name + "\n" + member->process->LogTail(6000) + "\n";
  return logs;
}

HttpResponse Cluster::Post(const ApiKey& key, const std::string& path, const std::string& body) {
  return Http(port(), "POST", path, key.headers(), body);
}

SseStream Cluster::Stream(const ApiKey& key, const std::string& body) {
  return HttpStream(port(), "/v1/chat/completions", key.headers(), body);
}

}  // namespace tollgate::test
