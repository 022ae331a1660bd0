#include "common/rpc/callers.h"

#include <google/protobuf/descriptor.h>
#include <grpc/grpc_security_constants.h>
#include <grpcpp/security/auth_context.h>

#include <atomic>
#include <utility>

#include "common/audit/refused_calls.h"
#include "common/base/clock.h"
#include "common/base/text.h"
#include "common/observability/log.h"
#include "common/observability/metrics.h"
#include "common/rpc/peer.h"

namespace tollgate::rpc {
namespace {

constexpr size_t kMaxLoggedBytes = 200;
constexpr int64_t kLogEveryUs = 1'000'000;

constexpr std::pair<std::string_view, CallerSet> kServices[] = {
    {"auth", kAuth},           {"billing", kBilling}, {"catalog", kCatalog},
    {"dashboard", kDashboard}, {"gateway", kGateway}, {"inference-router", kInferenceRouter},
    {"ratelimit", kRatelimit},
};

CallerSet BitOf(const CertificateName& name) {
  if (name.kind == PeerKind::kOperator) return kOperator;
  for (const auto& [service, bit] : kServices) {
    if (name.name == service) return bit;
  }
  return 0;
}

// Returns the row of a method, or null.
const MethodCallers* RowOf(std::span<const MethodCallers> rows, std::string_view method) {
  const MethodCallers* best = nullptr;
  for (const MethodCallers& row : rows) {
    if (row.method == method) return &row;
    const bool covers = row.method.ends_with('*') &&
                        method.starts_with(row.method.substr(0, row.method.size() - 1));
    if (covers && (best == nullptr || row.method.size() > best->method.size())) best = &row;
  }
  return best;
}

class CallerCheck : public grpc::AuthMetadataProcessor {
 public:
  explicit CallerCheck(CallerRules rules) : rules_(std::move(rules)) {
    // All series exist from the start, so that alerts see them rise from zero.
    for (const char* other : {"unknown", "operator"}) Refused(other);
    for (const auto& [service, bit] : kServices) Refused(std::string(service));
  }

  // The check never waits, so gRPC runs it on the thread that received the call.
  bool IsBlocking() const override { return false; }

  grpc::Status Process(const InputMetadata& metadata, grpc::AuthContext* connection,
                       OutputMetadata*, OutputMetadata*) override {
    const std::string_view method = MethodOf(metadata);
    const std::string_view uri = CertificateUri(*connection);
    const auto name = ParseCertificateName(uri);
    if (!name || name->domain != rules_.trust_domain) {
      return Refuse(method, uri, "unknown",
                    "the certificate of the caller has no name of this deployment, such as " +
                        ServiceUri(rules_.trust_domain, "gateway"));
    }
    const CallerSet caller = BitOf(*name);
    const std::string label = name->kind == PeerKind::kOperator ? "operator"
                              : caller != 0                     ? std::string(name->name)
                                                                : "unknown";
    const MethodCallers* row = RowOf(rules_.rows, method);
    if (row == nullptr || (row->callers & caller) == 0) {
      std::string why = std::string(uri) + " may not call " + ToValidUtf8(method, kMaxLoggedBytes);
      if (row == nullptr) why += " at this address (admin services: host.admin_grpc_listen)";
      return Refuse(method, uri, label, why);
    }
    if (!rules_.allowed_names.empty() && !IsListed(*connection)) {
      return Refuse(method, uri, label, "the caller is not in host.tls.allowed_callers");
    }
    return grpc::Status::OK;
  }

 private:
  static prometheus::Counter& Refused(const std::string& caller) {
    return metrics::Counter("tollgate_rpc_refused_calls_total",
                            "Calls of other processes that were refused, by the caller in their "
                            "certificate: a process, operator or unknown.",
                            {{"caller", caller}});
  }

  // Returns "package.Service/Method"; empty without a path.
  static std::string_view MethodOf(const InputMetadata& metadata) {
    const auto path = metadata.find(":path");
    if (path == metadata.end()) return {};
    std::string_view method(path->second.data(), path->second.size());
    if (method.starts_with('/')) method.remove_prefix(1);
    return method;
  }

  // Names callers as the audit log does (common/admin/caller.h). A certificate without a name of
  // this deployment is named by its content.
  std::string ActorOf(std::string_view uri) const {
    const auto name = ParseCertificateName(uri);
    if (!name || name->domain != rules_.trust_domain) {
      return "unknown:" + ToValidUtf8(uri, kMaxLoggedBytes);
    }
    return (name->kind == PeerKind::kOperator ? "cert:" : "service:") + std::string(name->name);
  }

  bool IsListed(const grpc::AuthContext& connection) const {
    for (const char* property : {GRPC_PEER_SPIFFE_ID_PROPERTY_NAME, GRPC_X509_SAN_PROPERTY_NAME}) {
      for (const grpc::string_ref& name : connection.FindPropertyValues(property)) {
        if (rules_.allowed_names.contains(std::string(name.data(), name.size()))) return true;
      }
    }
    return false;
  }

  grpc::Status Refuse(std::string_view method, std::string_view uri, const std::string& label,
                      const std::string& why) {
    Refused(label).Increment();
    // A caller that retries continuously must not fill the log.
    const int64_t now_us = SystemClock::Get().MonotonicUs();
    int64_t next_us = next_log_us_.load(std::memory_order_relaxed);
    if (now_us >= next_us && next_log_us_.compare_exchange_strong(next_us, now_us + kLogEveryUs)) {
      log::Warn("call refused", {{"method", ToValidUtf8(method, kMaxLoggedBytes)},
                                 {"caller", ToValidUtf8(uri, kMaxLoggedBytes)},
                                 {"reason", ToValidUtf8(why, 2 * kMaxLoggedBytes)},
                                 {"not_logged", not_logged_.exchange(0)}});
    } else {
      ++not_logged_;
    }
    audit::RefusedCalls::OfProcess().Note({.actor = ActorOf(uri),
                                           .address = "",
                                           .method = std::string(method),
                                           .workspace = "",
                                           .reason = why},
                                          SystemClock::Get().WallUs());
    return {grpc::StatusCode::PERMISSION_DENIED, why};
  }

  const CallerRules rules_;
  std::atomic<int64_t> next_log_us_{0};
  std::atomic<int64_t> not_logged_{0};
};

}  // namespace

std::shared_ptr<grpc::AuthMetadataProcessor> MakeCallerCheck(CallerRules rules) {
  return std::make_shared<CallerCheck>(std::move(rules));
}

std::vector<std::string> MethodsWithoutRow(std::span<const std::string> services,
                                           std::span<const MethodCallers> rows) {
  std::vector<std::string> missing;
  for (const std::string& service : services) {
    const auto* descriptor =
        google::protobuf::DescriptorPool::generated_pool()->FindServiceByName(service);
    if (descriptor == nullptr) {
      if (RowOf(rows, service + "/") == nullptr) missing.push_back(service);
      continue;
    }
    for (int i = 0; i < descriptor->method_count(); ++i) {
      std::string method = service + "/" + descriptor->method(i)->name();
      if (RowOf(rows, method) == nullptr) missing.push_back(std::move(method));
    }
  }
  return missing;
}

}  // namespace tollgate::rpc
