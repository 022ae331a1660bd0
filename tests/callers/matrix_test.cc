// Every certificate × every method × every gRPC address of a running cluster: a call is admitted
// exactly where the tables of callers say so. A second test writes out the most important pairs,
// since the tables cannot check themselves.
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_certificate_verifier.h>
#include <grpcpp/security/tls_credentials_options.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "common/rpc/tls.h"
#include "services/auth/rpc/callers.h"
#include "services/billing/rpc/callers.h"
#include "services/catalog/rpc/callers.h"
#include "services/inference_router/rpc/callers.h"
#include "services/people/rpc/callers.h"
#include "services/ratelimit/rpc/callers.h"
#include "tests/callers/all_methods.h"
#include "tests/callers/certificates.h"
#include "tests/callers/raw_call.h"
#include "tests/support/cluster.h"
#include "tests/support/engine_sim.h"
#include "tollgate/admin/v1/audit.grpc.pb.h"
#include "tollgate/catalog/v1/catalog.grpc.pb.h"

namespace tollgate::test {
namespace {

constexpr char kEngineKey[] = "engine-secret-for-tests";

// The outcome of a call.
enum class Fate { kNoConnection, kRefused, kLetIn };

std::string Text(Fate fate) {
  switch (fate) {
    case Fate::kNoConnection:
      return "no connection";
    case Fate::kRefused:
      return "refused";
    case Fate::kLetIn:
      return "let in";
  }
  return "";
}

struct CallerCase {
  std::string name;
  // Folder below the certificates; empty: see plain_text.
  std::string place;
  bool plain_text = false;  // else: TLS without a certificate
  // The caller's bit in the tables; 0: refused everywhere.
  rpc::CallerSet bit = 0;
  bool connects = true;
};

const std::vector<CallerCase>& Callers() {
  static const std::vector<CallerCase> cases = {
      {"auth", "auth", false, rpc::kAuth},
      {"billing", "billing", false, rpc::kBilling},
      {"catalog", "catalog", false, rpc::kCatalog},
      {"dashboard", "dashboard", false, rpc::kDashboard},
      {"gateway", "gateway", false, rpc::kGateway},
      {"inference-router", "inference-router", false, rpc::kInferenceRouter},
      {"ratelimit", "ratelimit", false, rpc::kRatelimit},
      {"operator", "operators/admin", false, rpc::kOperator},
      {"an unknown service", "unknown-service"},
      {"a gateway of another trust domain", "other-domain"},
      {"an operator of another trust domain", "other-operator"},
      {"a certificate without a name", "without-name"},
      {"a gateway of another authority", "other-authority", false, 0, false},
      {"an expired gateway", "expired", false, 0, false},
      {"TLS without a certificate", "", false, 0, false},
      {"plain text", "", true, 0, false},
  };
  return cases;
}

class MatrixTest : public ::testing::Test {
 protected:
  void SetUp() override {
    certificates_.emplace(folder_.path());
    std::string failure;
    ASSERT_TRUE(engine_.Start(&failure)) << failure;
    ClusterOptions options;
    options.all_in_one = false;
    options.catalog = DefaultCatalog({engine_.base_url()}, "1", "2");
    const size_t at = options.catalog.find("        kind: vllm\n");
    ASSERT_NE(at, std::string::npos);
    options.catalog.insert(at, std::string("        api_key: ") + kEngineKey + "\n");
    options.certificates = certificates_->folder();
    cluster_.emplace(options);
    ASSERT_EQ(cluster_->Start(), "");
  }
  void TearDown() override {
    if (cluster_) EXPECT_EQ(cluster_->StopOrderly(), "");
  }

  // Where a process listens.
  struct Address {
    std::string process;
    bool is_admin = false;
    std::string address;
  };
  std::vector<Address> Addresses() {
    std::vector<Address> all;
    for (const char* process :
         {"auth", "billing", "catalog", "dashboard", "gateway", "ratelimit", "inference-router"}) {
      if (const std::string address = cluster_->grpc_address(process); !address.empty()) {
        all.push_back({process, false, address});
      }
      if (const std::string admin = cluster_->admin_grpc_address(process); !admin.empty()) {
        all.push_back({process, true, admin});
      }
    }
    return all;
  }

  std::shared_ptr<grpc::Channel> Connect(const CallerCase& caller, const Address& to) {
    std::shared_ptr<grpc::ChannelCredentials> credentials = grpc::InsecureChannelCredentials();
    if (!caller.place.empty()) {
      const auto files = rpc::TlsFiles::Open(certificates_->Of(caller.place));
      EXPECT_TRUE(files.ok()) << files.error();
      credentials = files->ForClientOf(to.process);
    } else if (!caller.plain_text) {
      namespace tls = grpc::experimental;
      tls::TlsChannelCredentialsOptions options;
      options.set_certificate_provider(std::make_shared<tls::StaticDataCertificateProvider>(
          ReadFile(certificates_->folder() + "/authority.pem")));
      options.watch_root_certs();
      options.set_check_call_host(false);
      options.set_certificate_verifier(std::make_shared<tls::NoOpCertificateVerifier>());
      credentials = tls::TlsCredentials(options);
    }
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
    return grpc::CreateCustomChannel(to.address, credentials, arguments);
  }

  static Fate FateOf(const grpc::Status& status, const std::string& method) {
    if (status.error_code() == grpc::StatusCode::UNAVAILABLE) return Fate::kNoConnection;
    const std::string& text = status.error_message();
    const bool refused = status.error_code() == grpc::StatusCode::PERMISSION_DENIED &&
                         (text.find(" may not call " + method) != std::string::npos ||
                          text.find("has no name of this deployment") != std::string::npos);
    return refused ? Fate::kRefused : Fate::kLetIn;
  }

  TempDir folder_;
  std::optional<Certificates> certificates_;
  EngineSim engine_{EngineSimOptions()};
  std::optional<Cluster> cluster_;
};

bool IsProcessInfo(const std::string& method) {
  return method == "tollgate.common.v1.ProcessInfoService/GetProcessInfo";
}

// The callers that the tables allow for a method at an address.
rpc::CallerSet AllowedBy(const std::string& process, bool is_admin, const std::string& method) {
  using Rows = std::span<const rpc::MethodCallers>;
  static const std::multimap<std::pair<std::string, bool>, Rows> tables = {
      {{"auth", false}, auth::kCallers},
      {{"auth", true}, auth::kAdminCallers},
      {{"auth", true}, people::kAdminCallers},
      {{"billing", false}, billing::kCallers},
      {{"billing", true}, billing::kAdminCallers},
      {{"catalog", false}, catalog::kCallers},
      {{"inference-router", false}, inference_router::kCallers},
      {{"inference-router", true}, inference_router::kAdminCallers},
      {{"ratelimit", false}, ratelimit::kCallers},
  };
  // Every process serves ProcessInfo at each of its addresses.
  if (IsProcessInfo(method)) return rpc::kDashboard | rpc::kOperator;
  const auto [first, last] = tables.equal_range({process, is_admin});
  for (auto table = first; table != last; ++table) {
    for (const rpc::MethodCallers& row : table->second) {
      const std::string name(row.method);
      if (name == method) return row.callers;
      // The tables have rows for whole services as well as for single methods.
      if (name.ends_with("/*") && method.substr(0, method.find('/')) + "/*" == name)
        return row.callers;
    }
  }
  const bool public_api = method.starts_with("tollgate.admin.v1.");
  return is_admin && public_api ? rpc::kDashboard | rpc::kOperator : 0;
}

TEST_F(MatrixTest, EveryCertificateIsLetInExactlyWhereTheTablesSaySo) {
  const auto methods = AllMethods();
  ASSERT_GT(methods.size(), 60U);
  std::set<std::string> served_somewhere;
  int calls = 0, let_in = 0, refused = 0, unconnected = 0;
  for (const Address& to : Addresses()) {
    ASSERT_FALSE(to.address.empty()) << to.process;
    for (const CallerCase& caller : Callers()) {
      const auto channel = Connect(caller, to);
      for (const Method& method : methods) {
        const rpc::CallerSet allowed = AllowedBy(to.process, to.is_admin, method.name);
        const Fate expected = !caller.connects              ? Fate::kNoConnection
                              : (allowed & caller.bit) != 0 ? Fate::kLetIn
                                                            : Fate::kRefused;
        const grpc::Status status = RawCall(channel, method.name);
        const Fate fate = FateOf(status, method.name);
        ++calls;
        (fate == Fate::kLetIn ? let_in : fate == Fate::kRefused ? refused : unconnected) += 1;
        EXPECT_EQ(Text(fate), Text(expected))
            << caller.name << " calls " << method.name << " of " << to.process
            << (to.is_admin ? " (admin)" : "") << ": " << status.error_code() << " "
            << status.error_message();
        if (fate != Fate::kLetIn) continue;
        // Methods for gateways and routers are at one address, methods for operators at the other.
        if (!IsProcessInfo(method.name)) {
          EXPECT_EQ(method.is_admin, to.is_admin) << method.name << " of " << to.process;
        }
        const bool served = status.error_code() != grpc::StatusCode::UNIMPLEMENTED;
        if (served) served_somewhere.insert(method.name);
        // The tables list only existing methods; the public API is spread over processes.
        EXPECT_TRUE(served || method.name.starts_with("tollgate.admin.v1."))
            << to.process << " has a row for " << method.name;
      }
    }
  }
  std::printf("MATRIX calls=%d let_in=%d refused=%d no_connection=%d methods=%zu\n", calls, let_in,
              refused, unconnected, served_somewhere.size());
  for (const Method& method : methods) {
    EXPECT_TRUE(served_somewhere.contains(method.name)) << "no process serves " << method.name;
  }
}

// H78. A refused call is an entry of the audit log that people read, also when billing refused it.
TEST_F(MatrixTest, ARefusedCallIsInTheAuditLog) {
  const auto at = [this](const std::string& process, bool is_admin) {
    for (const Address& to : Addresses()) {
      if (to.process == process && to.is_admin == is_admin) return to;
    }
    return Address();
  };
  const auto caller = [](const std::string& name) {
    return *std::ranges::find(Callers(), name, &CallerCase::name);
  };
  const std::string meter = "tollgate.billing.v1.MeteringService/Meter";
  const std::string create_key = "tollgate.admin.v1.KeyService/CreateKey";
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(RawCall(Connect(caller("gateway"), at("billing", false)), meter).error_code(),
              grpc::StatusCode::PERMISSION_DENIED);
    EXPECT_EQ(RawCall(Connect(caller("gateway"), at("auth", true)), create_key).error_code(),
              grpc::StatusCode::PERMISSION_DENIED);
  }
  const auto audit =
      admin::v1::AuditService::NewStub(Connect(caller("operator"), at("auth", true)));
  // Number of entries by "actor subject source".
  std::map<std::string, int> entries;
  const bool found = WaitUntil(
      [&] {
        grpc::ClientContext context;
        admin::v1::ListAuditEntriesRequest request;
        request.set_filter("action = \"call.refuse\"");
        request.set_page_size(100);
        admin::v1::ListAuditEntriesResponse response;
        EXPECT_TRUE(audit->ListAuditEntries(&context, request, &response).ok());
        entries.clear();
        for (const auto& entry : response.audit_entries()) {
          ++entries[entry.actor() + " " + entry.subject() + " " + entry.source()];
        }
        return entries.contains("service:gateway " + meter + " billing") &&
               entries.contains("service:gateway " + create_key + " ");
      },
      20'000, 100);
  EXPECT_TRUE(found);
  // The other 19 of each are counted together at the end of the minute.
  for (const auto& [entry, count] : entries) EXPECT_LE(count, 2) << entry;
}

TEST_F(MatrixTest, ThePairsThatMatterMost) {
  const std::string billing = "tollgate.billing.v1.BillingService/";
  const std::string meter = "tollgate.billing.v1.MeteringService/Meter";
  const std::string verify = "tollgate.auth.v1.AuthService/VerifyKey";
  const std::string watch_keys = "tollgate.auth.v1.AuthService/WatchKeys";
  const std::string acquire = "tollgate.ratelimit.v1.RateLimitService/Acquire";
  const std::string catalog = "tollgate.catalog.v1.CatalogService/WatchCatalog";
  const std::string link = "tollgate.inference.v1.InferenceService/Link";
  const std::string drain = "tollgate.inference.v1.EngineAdminService/SetDrain";
  const std::string note = "tollgate.auth.v1.FrontService/NoteChange";
  const std::string drain_engine = "tollgate.admin.v1.EngineService/DrainEngine";
  const std::string credit = "tollgate.admin.v1.AdjustmentService/CreateCreditGrant";
  const std::string balance = "tollgate.admin.v1.LedgerService/GetBalance";
  const std::string create_key = "tollgate.admin.v1.KeyService/CreateKey";
  struct Row {
    const char* caller;
    const char* process;
    bool admin;
    std::string method;
    bool let_in;
  };
  const Row rows[] = {
      {"gateway", "billing", false, billing + "Authorize", true},
      {"gateway", "billing", false, billing + "Void", true},
      {"gateway", "billing", false, billing + "GetUsage", true},
      {"gateway", "billing", false, billing + "GetAnswer", true},
      {"gateway", "billing", false, billing + "GetReceipt", true},
      {"gateway", "billing", false, meter, false},
      {"gateway", "billing", false, credit, false},
      {"gateway", "billing", true, credit, false},
      {"gateway", "billing", true, balance, false},
      {"gateway", "auth", false, verify, true},
      {"gateway", "auth", false, watch_keys, true},
      {"gateway", "auth", true, create_key, false},
      {"gateway", "ratelimit", false, acquire, true},
      {"gateway", "catalog", false, catalog, true},
      {"gateway", "inference-router", false, link, true},
      {"inference-router", "billing", false, meter, true},
      {"inference-router", "billing", false, billing + "Authorize", false},
      {"inference-router", "billing", false, billing + "Void", false},
      {"inference-router", "billing", false, billing + "GetAnswer", false},
      {"inference-router", "billing", false, billing + "GetReceipt", false},
      {"inference-router", "billing", true, credit, false},
      {"inference-router", "auth", false, verify, false},
      {"inference-router", "auth", true, create_key, false},
      {"inference-router", "ratelimit", false, acquire, false},
      {"inference-router", "catalog", false, catalog, true},
      {"inference-router", "inference-router", false, link, false},
      {"dashboard", "billing", true, balance, true},
      {"dashboard", "auth", true, create_key, true},
      {"dashboard", "billing", false, credit, false},
      {"dashboard", "billing", false, billing + "Authorize", false},
      {"dashboard", "billing", false, meter, false},
      {"dashboard", "auth", false, verify, false},
      {"dashboard", "catalog", false, catalog, false},
      {"dashboard", "inference-router", false, link, false},
      {"dashboard", "inference-router", true, drain, true},
      {"dashboard", "auth", true, note, true},
      {"operator", "inference-router", true, drain, false},
      {"operator", "auth", true, note, false},
      {"operator", "dashboard", true, drain_engine, true},
      {"gateway", "inference-router", true, drain, false},
      {"gateway", "dashboard", true, drain_engine, false},
      {"inference-router", "auth", true, note, false},
      {"operator", "billing", true, balance, true},
      {"operator", "auth", true, create_key, true},
      {"operator", "billing", false, billing + "Authorize", false},
      {"operator", "billing", false, meter, false},
      {"operator", "auth", false, watch_keys, false},
      {"operator", "catalog", false, catalog, false},
      {"operator", "inference-router", false, link, false},
      {"auth", "billing", false, billing + "Authorize", false},
      {"auth", "billing", true, credit, false},
      {"billing", "auth", true, create_key, false},
      {"catalog", "auth", false, watch_keys, false},
      {"ratelimit", "billing", false, meter, false},
      {"an unknown service", "billing", true, credit, false},
      {"a gateway of another trust domain", "billing", false, billing + "Authorize", false},
      {"an operator of another trust domain", "billing", true, credit, false},
      {"a certificate without a name", "auth", false, verify, false},
  };
  const auto addresses = Addresses();
  for (const Row& row : rows) {
    const auto to = std::find_if(addresses.begin(), addresses.end(), [&](const Address& at) {
      return at.process == row.process && at.is_admin == row.admin;
    });
    ASSERT_NE(to, addresses.end());
    const auto caller = std::find_if(Callers().begin(), Callers().end(),
                                     [&](const CallerCase& at) { return at.name == row.caller; });
    ASSERT_NE(caller, Callers().end()) << row.caller;
    const grpc::Status status = RawCall(Connect(*caller, *to), row.method);
    EXPECT_EQ(Text(FateOf(status, row.method)), Text(row.let_in ? Fate::kLetIn : Fate::kRefused))
        << row.caller << " calls " << row.method << " of " << row.process << ": "
        << status.error_message();
  }
}

TEST_F(MatrixTest, AServiceIsNotTakenForAnother) {
  const auto addresses = Addresses();
  const auto gateway = rpc::TlsFiles::Open(certificates_->Of("gateway"));
  ASSERT_TRUE(gateway.ok());
  for (const Address& to : addresses) {
    for (const char* expected : {"auth", "billing", "catalog", "ratelimit", "inference-router"}) {
      const auto channel = grpc::CreateChannel(to.address, gateway->ForClientOf(expected));
      const auto status = RawCall(channel, "tollgate.auth.v1.AuthService/VerifyKey");
      EXPECT_EQ(status.error_code() == grpc::StatusCode::UNAVAILABLE, to.process != expected)
          << "expected " << expected << " at the address of " << to.process << ": "
          << status.error_message();
    }
  }
}

TEST_F(MatrixTest, EngineKeysGoToInferenceRoutersOnly) {
  for (const char* caller : {"inference-router", "gateway"}) {
    for (const bool asks : {true, false}) {
      const auto files = rpc::TlsFiles::Open(certificates_->Of(caller));
      ASSERT_TRUE(files.ok());
      const auto stub = catalog::v1::CatalogService::NewStub(
          grpc::CreateChannel(cluster_->grpc_address("catalog"), files->ForClientOf("catalog")));
      catalog::v1::WatchCatalogRequest request;
      request.set_with_engine_keys(asks);
      grpc::ClientContext context;
      context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(10));
      const auto reader = stub->WatchCatalog(&context, request);
      catalog::v1::WatchCatalogResponse message;
      ASSERT_TRUE(reader->Read(&message));
      const bool has_key = message.SerializeAsString().find(kEngineKey) != std::string::npos;
      EXPECT_EQ(has_key, std::string(caller) == "inference-router") << caller;
      context.TryCancel();
      while (reader->Read(&message)) {
      }
      reader->Finish();
      grpc::ClientContext again;
      again.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(10));
      catalog::v1::GetCatalogResponse answer;
      ASSERT_TRUE(stub->GetCatalog(&again, {}, &answer).ok());
      EXPECT_EQ(answer.SerializeAsString().find(kEngineKey), std::string::npos) << caller;
    }
  }
}

}  // namespace
}  // namespace tollgate::test
