#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>
#include <set>

#include "common/base/clock.h"
#include "common/base/utc_text.h"
#include "common/http/http_call.h"
#include "common/rpc/tls.h"
#include "services/cli/doctor/probe.h"
#include "tollgate/common/v1/process.grpc.pb.h"

namespace tollgate::cli {

class Versions {
 public:
  void Note(const std::string& version, const std::string& process) {
    const std::lock_guard lock(mutex_);
    by_version_[version].insert(process);
  }
  std::map<std::string, std::set<std::string>> ByVersion() const {
    const std::lock_guard lock(mutex_);
    return by_version_;
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::string, std::set<std::string>> by_version_;
};

namespace {

using common::v1::GetProcessInfoResponse;

// An address to call, and the expected service.
struct Address {
  std::string address;
  std::string service;
  // File and field that contain the address.
  std::string named_by;
  bool tls = false;

  std::string subject() const { return service + " at " + address; }
};

constexpr char kTlsAdvice[] =
    "TLS fails: compare the authorities of both ends, the name in the server's certificate "
    "(spiffe://DOMAIN/svc/SERVICE), the expiry of both certificates (the checks \"certificate\"), "
    "and whether the target is the address of that service";

Finding Unreached(const Address& at, const DoctorOptions& options, const grpc::Status& status) {
  const std::string subject = at.subject();
  switch (status.error_code()) {
    case grpc::StatusCode::PERMISSION_DENIED:
      return Failure(subject, "refuses the call: " + status.error_message(),
                     "use the certificate of an operator of this trust domain (--tls-cert, "
                     "--trust-domain), which host.tls.allowed_callers must not exclude");
    case grpc::StatusCode::UNIMPLEMENTED:
      return Failure(subject,
                     "does not know the call: it is not a process of Tollgate, or an old one",
                     "correct " + at.named_by + ", or finish the upgrade");
    case grpc::StatusCode::DEADLINE_EXCEEDED:
      return Failure(subject, "takes the connection, but does not answer",
                     "the process hangs or is stopped, or the other end does not speak gRPC" +
                         std::string(at.tls ? " over TLS" : "") + ": look at its log and at " +
                         at.named_by);
    default:
      break;
  }
  const bool tls = rpc::TlsIsOn(options.tls) && !at.address.starts_with("unix:");
  return Failure(subject, "takes the connection, but the call fails: " + status.error_message(),
                 tls ? kTlsAdvice
                     : "the other end requires TLS, or is not a process of Tollgate: give your "
                       "certificate with --tls-ca, --tls-cert and --tls-key, or correct " +
                           at.named_by);
}

Findings Ask(const Address& at, const DoctorOptions& options, Versions& versions) {
  const std::string subject = at.subject();
  // Shared deadline of the calls below: leaves time to report before the check itself times out.
  const auto deadline =
      std::chrono::system_clock::now() + std::chrono::milliseconds(options.timeout_ms * 3 / 4);
  if (at.tls && !rpc::TlsIsOn(options.tls) && !at.address.starts_with("unix:")) {
    return {Skipped(subject, "it requires a certificate, and you gave none",
                    "give one with --tls-ca, --tls-cert and --tls-key")};
  }
  constexpr std::string_view kUnix = "unix:";
  if (at.address.starts_with(kUnix)) {
    const std::string path = at.address.substr(kUnix.size());
    if (::access(path.c_str(), R_OK | W_OK) != 0) {
      return {Failure(subject, "the socket cannot be opened: " + std::string(std::strerror(errno)),
                      "start the process, correct " + at.named_by +
                          ", or run the doctor as a user who may open it")};
    }
  } else {
    const std::string error = TryToConnect(at.address, options.timeout_ms / 2);
    if (!error.empty()) {
      return {Failure(subject, "cannot be reached: " + error,
                      "start the process, correct " + at.named_by +
                          ", or open the way to it (firewall, network policy)")};
    }
  }
  const auto channel = OpenChannel(options, at.address, at.service);
  if (!channel.ok()) {
    return {Failure(subject, "your certificate cannot be used: " + channel.error(),
                    "correct --tls-ca, --tls-cert and --tls-key")};
  }
  const auto stub = common::v1::ProcessInfoService::NewStub(*channel);
  grpc::ClientContext context;
  PrepareCall(options, context);
  context.set_deadline(deadline);
  context.set_wait_for_ready(false);
  GetProcessInfoResponse info;
  // The first call also makes the connection, so the clock is read by a second one.
  grpc::Status status = stub->GetProcessInfo(&context, {}, &info);
  if (!status.ok()) return {Unreached(at, options, status)};
  grpc::ClientContext again;
  PrepareCall(options, again);
  again.set_deadline(deadline);
  const int64_t asked_us = SystemClock::Get().WallUs();
  status = stub->GetProcessInfo(&again, {}, &info);
  const int64_t answered_us = SystemClock::Get().WallUs();
  if (!status.ok()) return {Unreached(at, options, status)};

  versions.Note(info.version(), info.service() + " " + info.id().substr(0, 8));
  Findings findings;
  std::string parts;
  for (const std::string& part : info.not_ready()) parts += (parts.empty() ? "" : ", ") + part;
  const std::string since = UtcText(info.start_us(), UtcPrecision::kSeconds);
  if (info.service() != at.service && info.service() != "allinone") {
    findings.push_back(Failure(subject, "a process of " + info.service() + " answers there",
                               "correct " + at.named_by));
  } else if (info.ready()) {
    findings.push_back(Ok(subject, "answers within " + Duration(answered_us - asked_us) +
                                       ", ready, version " + info.version() + ", since " + since));
  } else {
    findings.push_back(Failure(subject, "answers, but is not ready: " + parts,
                               "its log and /readyz of its ops_listen say why; most often a "
                               "database or another service that it needs is not reached"));
  }
  if (info.now_us() == 0) {
    findings.push_back(
        Skipped(subject, "it does not report its time: it is older than this program"));
  } else {
    findings.push_back(ClockFinding(subject, ReadClock(info.now_us(), asked_us, answered_us)));
  }
  return findings;
}

class Book {
 public:
  void Add(const std::string& service, const std::string& addresses, const std::string& named_by,
           bool tls) {
    for (const std::string& address : SplitAddresses(addresses)) {
      if (address.starts_with("inproc")) continue;
      found_.emplace(address, Address{address, service, named_by, tls});
      known_.insert(service);
    }
  }
  bool Knows(const std::string& service) const { return known_.contains(service); }
  const std::map<std::string, Address>& all() const { return found_; }

 private:
  std::map<std::string, Address> found_;
  std::set<std::string> known_;
};

void AddTargets(const ServiceConfig& service, Book& book) {
  const auto& targets = service.config.targets();
  const bool tls = UsesTls(service);
  const auto add = [&](const char* of, const std::string& addresses, const char* field) {
    book.Add(of, addresses, std::string("targets.") + field + " of " + service.path, tls);
  };
  add("auth", targets.auth(), "auth");
  add("ratelimit", targets.ratelimit(), "ratelimit");
  add("billing", targets.billing(), "billing");
  add("catalog", targets.catalog(), "catalog");
  add("auth", targets.auth_admin(), "auth_admin");
  add("billing", targets.billing_admin(), "billing_admin");
  add("catalog", targets.catalog_admin(), "catalog_admin");
  add("gateway", targets.gateways(), "gateways");
  for (const std::string& router : targets.inference_routers()) {
    add("inference-router", router, "inference_routers");
  }
  for (const std::string& router : targets.router_admin()) {
    add("inference-router", router, "router_admin");
  }
}

// Adds the addresses that a process listens on, which are on this machine. Services that are named
// by targets are asked at those addresses.
void AddOwn(const ServiceConfig& service, Book& book) {
  const auto& host = service.config.host();
  const bool tls = UsesTls(service);
  for (const std::string& address : SplitAddresses(host.grpc_listen())) {
    book.Add(service.service, CalledFromHere(address), "host.grpc_listen of " + service.path, tls);
  }
  for (const std::string& address : SplitAddresses(host.admin_grpc_listen())) {
    book.Add(service.service, CalledFromHere(address), "host.admin_grpc_listen of " + service.path,
             tls);
  }
}

Findings AskPublic(const std::string& subject, const std::string& base_url, int timeout_ms) {
  http::HttpCall call;
  call.url = base_url + (base_url.ends_with('/') ? "healthz" : "/healthz");
  call.timeout_ms = timeout_ms * 3 / 4;
  call.connect_timeout_ms = timeout_ms / 2;
  const http::HttpAnswer answer = http::Send(call);
  if (answer.outcome != http::HttpAnswer::Outcome::kAnswered) {
    return {Failure(subject, "does not answer: " + answer.error,
                    "start the gateway, or correct the address, its certificate or what is in "
                    "front of it")};
  }
  if (answer.status != 200) {
    return {Failure(
        subject, "/healthz says " + std::to_string(answer.status),
        "503: the gateway is draining or hangs; other codes: check what is in front of it")};
  }
  return {Ok(subject, "answers")};
}

}  // namespace

std::shared_ptr<Versions> AddProcessChecks(const Inventory& inventory, const DoctorOptions& options,
                                           Checks& checks) {
  auto versions = std::make_shared<Versions>();
  Book book;
  for (const auto& target : options.targets) {
    book.Add(target.service, target.address, "the target of the command line",
             rpc::TlsIsOn(options.tls));
  }
  for (const ServiceConfig& service : inventory.services) AddTargets(service, book);
  std::set<std::string> named;
  for (const ServiceConfig& service : inventory.services) {
    if (book.Knows(service.service)) named.insert(service.service);
  }
  for (const ServiceConfig& service : inventory.services) {
    if (!named.contains(service.service)) AddOwn(service, book);
  }
  for (const auto& [address, at] : book.all()) {
    checks.push_back(
        {"process", at.subject(), [at, options, versions] { return Ask(at, options, *versions); }});
  }
  for (const ServiceConfig& service : inventory.services) {
    const std::string url = service.config.gateway().base_url();
    if (url.empty()) continue;
    const std::string subject = "the public API, " + url;
    checks.push_back({"process", subject, [subject, url, timeout_ms = options.timeout_ms] {
                        return AskPublic(subject, url, timeout_ms);
                      }});
  }
  return versions;
}

Line VersionLine(const Versions& versions) {
  const auto by_version = versions.ByVersion();
  size_t processes = 0;
  std::string text;
  for (const auto& [version, names] : by_version) {
    processes += names.size();
    text += (text.empty() ? "" : "; ") + version + ":";
    for (const std::string& name : names) text += " " + name;
  }
  if (processes == 0) {
    return {"version", Skipped("versions", "no process answered")};
  }
  if (by_version.size() > 1) {
    return {"version",
            Warning("versions", "processes of several versions are running: " + text,
                    "finish the upgrade, or roll it back (docs/runbooks/VersionsDiffer.md); "
                    "docs/operations.md, Starting, stopping, upgrading, has the order")};
  }
  const std::string version = by_version.begin()->first;
  if (version != TOLLGATE_VERSION) {
    return {"version", Warning("versions",
                               "the processes are of version " + version +
                                   ", this program of " TOLLGATE_VERSION,
                               "use the doctor of the version that runs")};
  }
  return {"version", Ok("versions", std::to_string(processes) + " processes, all of " + version)};
}

}  // namespace tollgate::cli
