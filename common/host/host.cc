#include "common/host/host.h"

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include <csignal>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>
#include <thread>

#include "common/base/try.h"
#include "common/host/admin_listener.h"
#include "common/host/descriptors.h"
#include "common/host/library_lines.h"
#include "common/host/loop_watch.h"
#include "common/host/plain_text.h"
#include "common/host/process_info.h"
#include "common/host/process_metrics.h"
#include "common/host/service_list.h"
#include "common/json/writer.h"
#include "common/observability/log.h"
#include "common/rpc/callers.h"
#include "common/rpc/channel.h"
#include "common/rpc/tls.h"
#include "common/tracing/tracer.h"

namespace tollgate::host {
namespace {

constexpr int kDefaultDrainSeconds = 30;
// Longest wait for the trace collector when the process stops.
constexpr int64_t kTracesMs = 2'000;

// The bound addresses by name; written to the address file for scripts and tests.
class BoundAddresses {
 public:
  void Report(std::string_view name, std::string_view address) {
    std::lock_guard lock(mutex_);
    addresses_[std::string(name)] = address;
  }

  Result<void> WriteTo(const std::string& path) {
    json::Writer object;
    {
      std::lock_guard lock(mutex_);
      for (const auto& [name, address] : addresses_) object.Text(name, address);
    }
    const std::string text = object.Done() + "\n";
    // Readers wait for the file to appear. The rename makes it appear complete.
    std::string draft = path + ".new";
    FILE* file = std::fopen(draft.c_str(), "we");
    bool written = file != nullptr && std::fwrite(text.data(), 1, text.size(), file) == text.size();
    if (file != nullptr) written = std::fclose(file) == 0 && written;
    if (!written || std::rename(draft.c_str(), path.c_str()) != 0) {
      return Internal("address_file \"" + path + "\": " + std::strerror(errno));
    }
    return {};
  }

 private:
  std::mutex mutex_;
  std::map<std::string, std::string> addresses_;
};

log::Level LevelByName(const std::string& name) {
  if (name == "debug") return log::Level::kDebug;
  if (name == "warn") return log::Level::kWarn;
  if (name == "error") return log::Level::kError;
  return log::Level::kInfo;
}

sigset_t StopSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  return signals;
}

// Whether a process accepts connections on the socket.
bool IsListening(const std::string& unix_path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (unix_path.size() >= sizeof address.sun_path) return false;  // binding reports this error
  std::memcpy(address.sun_path, unix_path.c_str(), unix_path.size());
  int probe = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  bool connected = connect(probe, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  close(probe);
  return connected;
}

// One of the two gRPC servers of the process.
struct ServerPlan {
  std::string field;   // configuration field of its addresses
  std::string listen;  // the field's value
  std::string name;    // name in the address file
  void (Module::*register_services)(grpc::ServerBuilder& builder);
  std::span<const rpc::MethodCallers> (Module::*callers)() const;
  std::vector<rpc::MethodCallers> rows;  // for the server's own methods
  grpc::Service* process_info;
};

// Starts a gRPC server. In-process channels always need it; it also listens on the configured
// addresses.
Result<std::unique_ptr<grpc::Server>> StartServer(const rpc::TlsFiles* tls, const ServerPlan& plan,
                                                  const Modules& modules,
                                                  BoundAddresses& addresses) {
  grpc::ServerBuilder builder;
  rpc::ConfigureServer(builder);
  // Enables grpc.health.v1. Clients use it to check this replica (common/rpc/health_probe.h).
  grpc::EnableDefaultHealthCheckService(true);
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);  // a port in use must be an error
  rpc::CallerRules rules{.rows = plan.rows};
  rules.rows.push_back(rpc::kHealthApi);
  rules.rows.push_back(kProcessInfoCallers);
  for (const auto& module : modules) {
    const auto rows = (module.get()->*plan.callers)();
    rules.rows.insert(rules.rows.end(), rows.begin(), rows.end());
  }
  const auto credentials =
      tls != nullptr ? tls->ForServer(rules) : grpc::InsecureServerCredentials();
  const auto services = CollectServices(builder);

  std::vector<std::pair<std::string, std::unique_ptr<int>>> listening;
  std::string rest = plan.listen;
  while (!rest.empty()) {
    size_t comma = rest.find(',');
    std::string address = rest.substr(0, comma);
    rest = comma == std::string::npos ? "" : rest.substr(comma + 1);
    bool is_unix = address.starts_with("unix:");
    if (is_unix && IsListening(address.substr(5))) {
      return Internal(plan.field + ": another process is already listening on \"" + address + "\"");
    }
    if (is_unix) unlink(address.c_str() + 5);  // left over from a process that was killed
    listening.emplace_back(address, std::make_unique<int>(-1));
    // Access to a unix socket is controlled by its file mode; TLS is for network addresses.
    builder.AddListeningPort(address, is_unix ? grpc::InsecureServerCredentials() : credentials,
                             listening.back().second.get());
  }
  for (const auto& module : modules) (module.get()->*plan.register_services)(builder);
  builder.RegisterService(plan.process_info);
  // Responds UNIMPLEMENTED to all other methods. gRPC does not start a server without a service,
  // and the gateway and the dashboard have none.
  static grpc::CallbackGenericService unimplemented, unimplemented_admin;
  builder.RegisterCallbackGenericService(
      plan.register_services == &Module::Register ? &unimplemented : &unimplemented_admin);
  std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server == nullptr) return Internal(plan.field + ": cannot listen on \"" + plan.listen + "\"");
  // A bug of the program. Without this check it would show only where TLS is on.
  const auto missing = rpc::MethodsWithoutRow(*services, rules.rows);
  if (!missing.empty())
    return Internal(missing[0] + " has no row in the table of callers (callers.h)");
  for (const auto& [address, port] : listening) {
    if (*port < 0) return Internal(plan.field + ": cannot listen on \"" + address + "\"");
    bool is_unix = address.starts_with("unix:");
    std::string bound =
        is_unix ? address : address.substr(0, address.rfind(':') + 1) + std::to_string(*port);
    if (is_unix) chmod(address.c_str() + 5, 0600);
    addresses.Report(is_unix ? plan.name + "_unix" : plan.name, bound);
  }
  return server;
}

// Waits for SIGTERM or SIGINT. A second signal ends the process immediately.
void WaitForStopSignal() {
  sigset_t signals = StopSignals();
  int signal = 0;
  sigwait(&signals, &signal);
  log::Info("stopping", {{"signal", signal}});
  std::thread([] {
    sigset_t signals = StopSignals();
    int signal = 0;
    sigwait(&signals, &signal);
    log::Flush(100);
    _exit(128 + signal);
  }).detach();
}

class Process {
 public:
  Process(std::string_view name, const config::v1::HostConfig& config)
      : name_(name), config_(config), loops_(config.threads()) {}

  Result<void> Start(const config::v1::TargetsConfig& targets,
                     const std::function<Modules(HostContext&)>& make_modules) {
    TRY(CheckPlainText(config_, targets));
    if (rpc::TlsIsOn(config_.tls())) {
      auto tls = rpc::TlsFiles::Open(config_.tls());
      if (!tls) return Internal("host.tls: " + tls.error());
      tls_.emplace(std::move(tls).value());
    }
    const rpc::TlsFiles* tls = tls_ ? &*tls_ : nullptr;
    TRY(tracing::Start(config_.tracing(), {name_, start_.id}));
    channels_ = std::make_unique<rpc::ChannelSource>(tls);
    clients_ = MakeClientFactory(targets, *channels_, direct_);
    context_.emplace(HostContext{loops_, clock_, *clients_, direct_,
                                 [this](std::string_view name, std::string_view address) {
                                   addresses_.Report(name, address);
                                 },
                                 config_.insecure_plaintext()});
    loops_.Start();
    modules_ = make_modules(*context_);
    TRY(auto server, StartServer(tls,
                                 {"grpc_listen",
                                  config_.grpc_listen(),
                                  "grpc",
                                  &Module::Register,
                                  &Module::Callers,
                                  {},
                                  &process_info_},
                                 modules_, addresses_));
    server_ = std::move(server);
    TRY(auto admin_server, StartServer(tls,
                                       {"admin_grpc_listen",
                                        config_.admin_grpc_listen(),
                                        "admin_grpc",
                                        &Module::RegisterAdmin,
                                        &Module::AdminCallers,
                                        {rpc::kAdminApi},
                                        &admin_process_info_},
                                       modules_, addresses_));
    admin_server_ = std::move(admin_server);
    channels_->SetServers(server_.get(), admin_server_.get());
    ReportHealth();  // not serving, until the modules have started

    // Has a loop of its own, so that it answers when the others hang.
    ops_loops_.Start();
    admin_ = std::make_unique<AdminListener>(ops_loops_, name_, [this] { return ReadyReport(); });
    const std::string& ops =
        config_.ops_listen().empty() ? config_.admin_listen() : config_.ops_listen();
    TRY(CheckPlainHttp("host.ops_listen", ops, /*has_tls=*/false,
                       config_.insecure_plaintext() || config_.ops_insecure_plaintext(),
                       "an address of this machine, or, on a network of your own, "
                       "host.ops_insecure_plaintext: true"));
    TRY(admin_->Listen(ops.empty() ? "127.0.0.1:0" : ops));
    addresses_.Report("admin", admin_->address());
    for (const auto& module : modules_) {
      auto started = module->Start();
      if (!started) {
        return Internal(std::string(module->name()) + ": " + started.error().Cause());
      }
      log::Info("started", {{"module", module->name()}});
    }
    running_ = true;
    loop_watch_ = std::make_unique<LoopWatch>(loops_, [this](bool all_turn) {
      loops_turn_ = all_turn;
      ReportHealth();
    });
    return config_.address_file().empty() ? Result<void>()
                                          : addresses_.WriteTo(config_.address_file());
  }

  // Drains and stops the modules and releases everything, in reverse order.
  void Stop() {
    running_ = false;
    loop_watch_.reset();
    ReportHealth();
    int seconds = config_.drain_seconds() > 0 ? config_.drain_seconds() : kDefaultDrainSeconds;
    int64_t deadline_us = clock_.MonotonicUs() + seconds * int64_t{1'000'000};
    for (auto module = modules_.rbegin(); module != modules_.rend(); ++module) {
      (*module)->Drain(deadline_us);
    }
    for (auto module = modules_.rbegin(); module != modules_.rend(); ++module) (*module)->Stop();
    if (admin_) admin_->Stop();
    // Without a deadline, Shutdown waits for the streams that other processes keep open.
    for (auto* server : {&admin_server_, &server_}) {
      if (*server) (*server)->Shutdown(std::chrono::system_clock::now() + std::chrono::seconds(1));
    }
    if (channels_) channels_->SetServers(nullptr, nullptr);
    if (clients_) clients_->Stop();
    ops_loops_.Stop();
    loops_.Stop();
    while (!modules_.empty()) modules_.pop_back();
    admin_server_.reset();
    server_.reset();
    tracing::Stop(kTracesMs);
    if (!config_.address_file().empty()) unlink(config_.address_file().c_str());
  }

 private:
  std::vector<std::pair<std::string, bool>> ReadyReport() {
    std::vector<std::pair<std::string, bool>> report;
    if (!running_) report.emplace_back("process", false);
    if (!loops_turn_) report.emplace_back("loops", false);
    for (const auto& module : modules_)
      report.emplace_back(module->name(), running_ && module->Ready());
    return report;
  }

  // Clients send calls to other replicas while this one is not ready.
  void ReportHealth() {
    const auto report = ReadyReport();
    const bool ready =
        std::all_of(report.begin(), report.end(), [](const auto& part) { return part.second; });
    for (auto* server : {&server_, &admin_server_}) {
      if (*server) (*server)->GetHealthCheckService()->SetServingStatus(ready);
    }
  }

  const std::string name_;
  const config::v1::HostConfig& config_;
  Clock& clock_ = SystemClock::Get();
  const ProcessStart start_{name_, clock_.WallUs()};
  // One instance for each server.
  ProcessInfoRpc process_info_{start_, [this] { return ReadyReport(); }, SystemClock::Get()};
  ProcessInfoRpc admin_process_info_{start_, [this] { return ReadyReport(); }, SystemClock::Get()};
  LoopPool loops_;
  LoopPool ops_loops_{1};
  std::optional<rpc::TlsFiles> tls_;
  std::unique_ptr<rpc::ChannelSource> channels_;
  DirectServices direct_;
  std::unique_ptr<ClientFactory> clients_;
  BoundAddresses addresses_;
  std::optional<HostContext> context_;
  Modules modules_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<grpc::Server> admin_server_;
  std::unique_ptr<AdminListener> admin_;
  std::unique_ptr<LoopWatch> loop_watch_;
  std::atomic<bool> running_{false};
  std::atomic<bool> loops_turn_{true};
};

// A thread writes the log while this object lives. Created before everything that logs, so that it
// is destroyed last.
struct LogThread {
  explicit LogThread(int64_t queue_bytes) {
    log::StartWriter(static_cast<size_t>(std::max<int64_t>(queue_bytes, 0)));
    LogLibraryLines();
  }
  ~LogThread() { log::StopWriter(); }
};

}  // namespace

int Run(std::string_view process_name, const config::v1::HostConfig& host,
        const config::v1::TargetsConfig& targets,
        const std::function<Modules(HostContext&)>& make_modules) {
  // All threads started from here on inherit the mask, so only sigwait receives the stop signals.
  sigset_t signals = StopSignals();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
  if (host.core_dumps()) AllowCoreDumps();
  umask(077);  // files hold balances, key digests and engine keys: for the process's user only
  log::SetProcessName(std::string(process_name));
  log::SetLevel(LevelByName(host.log_level()));
  LogThread log_thread(host.log_queue_bytes());
  RaiseDescriptorLimit();
  RegisterProcessMetrics(process_name);

  Process process(process_name, host);
  auto started = process.Start(targets, make_modules);
  if (!started) {
    log::Error("start failed", {{"error", started.error().Cause()}});
    process.Stop();
    return 1;
  }
  log::Info("running", {{"version", TOLLGATE_VERSION}});
  WaitForStopSignal();
  process.Stop();
  log::Info("stopped");
  return 0;
}

}  // namespace tollgate::host
