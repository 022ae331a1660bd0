// `tollgate doctor` (docs/operations/doctor.md): each check finds a real fault, and reports none
// where there is none.
#include <grpcpp/grpcpp.h>
#include <sys/stat.h>

#include <csignal>
#include <filesystem>
#include <memory>

#include "common/base/clock.h"
#include "common/base/testing/certificate.h"
#include "tests/cli/command.h"
#include "tests/support/cluster.h"
#include "tests/support/engine_sim.h"
#include "tests/support/postgres.h"
#include "tests/support/redis.h"
#include "tollgate/common/v1/process.grpc.pb.h"

namespace tollgate::test {
namespace {

constexpr char kEngineKey[] = "engine-secret-for-tests";
constexpr char kRedisPassword[] = "redis-secret-for-tests";

std::string Catalog(const std::string& engine, const std::string& model, const std::string& more) {
  return "models:\n  - id: sim/model\n    context_window: 131072\n    input_usd_per_million: "
         "\"1\"\n"
         "    output_usd_per_million: \"2\"\n    capabilities: [chat]\n    engine_model: " +
         model +
         "\n    pool: main\npools:\n  - name: main\n    engines:\n      - id: sim-1\n"
         "        kind: vllm\n        base_url: " +
         engine + "\n" + more;
}

std::string WithKey(const std::string& key) { return "        api_key: " + key + "\n"; }

// A healthy cluster over TCP with mutual TLS, as deploy/make-certificates and `./dev secrets` set
// it up, for all tests that need processes.
class DoctorClusterTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    world_ = std::make_unique<World>();
    const char* source = std::getenv("TOLLGATE_SOURCE");
    const std::string make = std::string(source ? source : ".") + "/deploy/make-certificates " +
                             certificates() + " >/dev/null 2>&1";
    ASSERT_EQ(std::system(make.c_str()), 0);  // NOLINT
    std::string failure;
    ASSERT_TRUE(world_->engine.Start(&failure)) << failure;
    ClusterOptions options;
    options.all_in_one = false;
    options.catalog = Catalog(world_->engine.base_url(), "sim/model", WithKey(kEngineKey));
    options.certificates = certificates();
    // Few enough for the file limit of every machine.
    options.gateway_settings = {"max_connections: 100"};
    world_->cluster = std::make_unique<Cluster>(options);
    ASSERT_EQ(world_->cluster->Start(60'000), "");
  }
  static void TearDownTestSuite() {
    if (world_->cluster) EXPECT_EQ(world_->cluster->StopOrderly(), "");
    world_.reset();
  }

  static std::string certificates() { return world_->folder.path() + "/tls"; }
  static std::string Certificate(const std::string& place) {
    return " --tls-ca " + certificates() + "/authority.pem --tls-cert " + certificates() + "/" +
           place + "/certificate.pem --tls-key " + certificates() + "/" + place +
           "/private_key.pem";
  }
  static Diagnosis Doctor(const std::string& arguments,
                          const std::string& place = "operators/admin") {
    return Diagnosis(RunTollgate("--json --timeout 8 doctor --config " + world_->cluster->dir() +
                                 " " + arguments + Certificate(place)));
  }
  static EngineSimOptions EngineOptions() {
    EngineSimOptions options;
    options.api_key = kEngineKey;
    return options;
  }

  struct World {
    TempDir folder;
    EngineSim engine{EngineOptions()};
    std::unique_ptr<Cluster> cluster;
  };
  static inline std::unique_ptr<World> world_;
};

TEST_F(DoctorClusterTest, AHealthyClusterHasNothingToDoAndNoSecretIsPrinted) {
  const Diagnosis diagnosis = Doctor("--engines");
  // Free disk space depends on this machine.
  EXPECT_EQ(diagnosis.Wrong({"machine"}), "") << diagnosis.text();
  for (const char* service :
       {"auth", "billing", "catalog", "gateway", "inference-router", "ratelimit"}) {
    EXPECT_TRUE(diagnosis.Has("process", "ok", std::string(service) + " at ", "ready, version"))
        << service << diagnosis.text();
    EXPECT_TRUE(diagnosis.Has("certificate", "ok", std::string(service) + ".yaml host.tls",
                              "spiffe://tollgate/svc/" + std::string(service)))
        << service;
    EXPECT_TRUE(diagnosis.Has("process", "ok", std::string(service) + " at ", "its clock is"));
  }
  EXPECT_TRUE(diagnosis.Has("certificate", "ok", "yours", "spiffe://tollgate/operator/admin"));
  EXPECT_TRUE(diagnosis.Has("version", "ok", "versions", "7 processes, all of"));
  EXPECT_TRUE(diagnosis.Has("database", "ok", "auth.yaml", "SQLite, journal mode WAL, schema: "));
  EXPECT_TRUE(diagnosis.Has("database", "ok", "billing.yaml", "SQLite"));
  EXPECT_TRUE(diagnosis.Has("engine", "ok", "sim-1 (vllm", "takes the API key, serves 1 of 1"));
  EXPECT_TRUE(diagnosis.Has("engine", "ok", "sim-1 (vllm", "counts tokens"));
  EXPECT_TRUE(diagnosis.Has("engine", "ok", "sim-1 (vllm", "reports usage on each chunk"));
  EXPECT_TRUE(diagnosis.Has("engine", "ok", "sim-1 at the routers", "up"));
  EXPECT_TRUE(diagnosis.Has("engine", "ok", "catalog file as catalog", "1 models, 1 engines"));
  EXPECT_TRUE(diagnosis.Has("machine", "ok", "gateway.yaml open files", "the process may open"));
  EXPECT_TRUE(diagnosis.Has("machine", "ok", "gateway.yaml trusted_proxies", "no request came"));
  for (const std::string& secret : {std::string(kEngineKey), std::string("a pepper for tests"),
                                    std::string("login-token-for")}) {
    EXPECT_EQ(diagnosis.text().find(secret), std::string::npos) << secret;
  }
  const Outcome shown =
      RunTollgate("doctor --config " + world_->cluster->dir() + Certificate("operators/admin"));
  EXPECT_NE(shown.out.find("0 failures"), std::string::npos) << shown.out << shown.error;
}

TEST_F(DoctorClusterTest, AProcessThatIsGoneAndOneThatHangsAreNamed) {
  Process& hanging = world_->cluster->process("catalog");
  hanging.Signal(SIGSTOP);
  world_->cluster->process("ratelimit").Kill();
  const Diagnosis diagnosis = Doctor("");
  hanging.Signal(SIGCONT);
  ASSERT_EQ(world_->cluster->Restart("ratelimit"), "");
  EXPECT_TRUE(diagnosis.Has("process", "failure", "ratelimit at ", "cannot be reached: "))
      << diagnosis.text();
  EXPECT_TRUE(diagnosis.Has("process", "failure", "catalog at ", "does not answer"))
      << diagnosis.text();
  EXPECT_TRUE(diagnosis.Has("process", "ok", "auth at ", "ready"));
}

TEST_F(DoctorClusterTest, ACertificateThatIsNoOperatorsIsRefusedAndNamed) {
  const Diagnosis diagnosis = Doctor("", "gateway");
  EXPECT_TRUE(diagnosis.Has("certificate", "failure", "yours",
                            "spiffe://tollgate/svc/gateway, not spiffe://tollgate/operator/NAME"))
      << diagnosis.text();
  EXPECT_TRUE(diagnosis.Has("process", "failure", "auth at ", "refuses the call"))
      << diagnosis.text();
}

TEST_F(DoctorClusterTest, WithoutACertificateAddressesWithTlsAreLeftOut) {
  const Diagnosis diagnosis(
      RunTollgate("--json --timeout 8 doctor --config " + world_->cluster->dir()));
  EXPECT_TRUE(diagnosis.Has("process", "skipped", "billing at ", "requires a certificate"))
      << diagnosis.text();
  EXPECT_TRUE(diagnosis.Has("certificate", "ok", "billing.yaml host.tls", "valid until"));
}

TEST_F(DoctorClusterTest, AnAddressOfAnotherServiceFailsByItsCertificate) {
  const TempDir folder;
  WriteFile(folder.path() + "/gateway.yaml",
            "host:\n  tls:\n    certificate_file: " + certificates() +
                "/gateway/certificate.pem\n    private_key_file: " + certificates() +
                "/gateway/private_key.pem\n    authority_file: " + certificates() +
                "/authority.pem\ntargets:\n  billing: \"" + world_->cluster->grpc_address("auth") +
                "\"\ngateway: {}\n");
  const Diagnosis diagnosis(RunTollgate("--json --timeout 8 doctor --config " + folder.path() +
                                        Certificate("operators/admin")));
  EXPECT_TRUE(diagnosis.Has("process", "failure", "billing at ", "the call fails"))
      << diagnosis.text();
}

TEST_F(DoctorClusterTest, ACatalogFileThatTheCatalogRefusesAndAnEngineThatIsDownAreFound) {
  const std::string good = ReadFile(world_->cluster->dir() + "/models.yaml");
  world_->cluster->WriteCatalog(good + "      - id: sim-1\n        base_url: http://127.0.0.1:1\n");
  world_->engine.SetListening(false);
  EXPECT_TRUE(WaitUntil(
      [&] {
        const Diagnosis diagnosis = Doctor("");
        return diagnosis.Has("engine", "failure", "catalog file as catalog", "sim-1") &&
               diagnosis.Has("configuration", "failure", "models.yaml", "listed twice") &&
               diagnosis.Has("engine", "failure", "sim-1 (vllm", "cannot be reached") &&
               diagnosis.Has("engine", "failure", "sim-1 at the routers", "down");
      },
      20'000, 200))
      << Doctor("").text();
  world_->engine.SetListening(true);
  world_->cluster->WriteCatalog(good);
  EXPECT_TRUE(WaitUntil(
      [&] { return Doctor("").Has("engine", "ok", "sim-1 at the routers", "up"); }, 20'000, 200));
}

// Checks that need no running process of the product.
class DoctorTest : public ::testing::Test {
 protected:
  // Reports on one configuration file; also checks that the report contains no secrets.
  Diagnosis Look(const std::string& name, const std::string& text, const std::string& more = "",
                 const std::string& environment = "") {
    WriteFile(folder_.path() + "/" + name, text);
    const Outcome outcome = RunTollgate(
        "--json --timeout 8 doctor --config " + folder_.path() + "/" + name + " " + more,
        environment);
    for (const char* secret : {kEngineKey, kRedisPassword}) {
      EXPECT_EQ(outcome.out.find(secret), std::string::npos);
    }
    return Diagnosis(outcome);
  }
  std::string At(const std::string& name) const { return folder_.path() + "/" + name; }

  TempDir folder_;
};

TEST_F(DoctorTest, AWrongLineIsNamedByFileLineAndField) {
  const Diagnosis diagnosis =
      Look("gateway.yaml", "host:\n  insecure_plaintext: true\ngateway:\n  listn: 127.0.0.1:0\n");
  EXPECT_TRUE(diagnosis.Has("configuration", "failure", "gateway.yaml:4:3",
                            "unknown field \"listn\" in GatewaySettings (did you mean"))
      << diagnosis.text();
  EXPECT_TRUE(Look("auth.yaml", "auth:\n  pepper: x\ntargets:\n  auth: a:1\nhost: [1]\n")
                  .Has("configuration", "failure", "auth.yaml", "HostConfig"));
  EXPECT_TRUE(Look("router.yaml", "router: {}\nbilling: {}\nunknown: 1\n")
                  .Has("configuration", "failure", "router.yaml", "unknown"));
  EXPECT_TRUE(Diagnosis(RunTollgate("--json doctor --config " + At("no-such-file")))
                  .Has("configuration", "failure", "no-such-file", "cannot be read"));
}

TEST_F(DoctorTest, WhatKeepsAProcessFromStartingIsFound) {
  const Diagnosis diagnosis =
      Look("gateway.yaml",
           "host:\n  grpc_listen: 10.0.0.1:7000\n  ops_listen: 0.0.0.0:9464\n"
           "gateway:\n  listen: 0.0.0.0:8080\n  idempotency_key_file: " +
               At("missing") + "\n");
  EXPECT_TRUE(diagnosis.Has("configuration", "failure", "gateway.yaml", "host.grpc_listen"))
      << diagnosis.text();
  EXPECT_TRUE(diagnosis.Has("configuration", "failure", "gateway.yaml", "host.ops_listen"));
  EXPECT_TRUE(diagnosis.Has("configuration", "failure", "gateway.yaml", "gateway.listen"));
  EXPECT_TRUE(
      diagnosis.Has("configuration", "failure", "gateway.idempotency_key_file", "cannot be read"));
  const Diagnosis weak = Look("auth.yaml", "auth:\n  pepper: too short a pepper\n");
  EXPECT_TRUE(weak.Has("configuration", "failure", "auth.pepper", "at least 32"));
  EXPECT_EQ(weak.text().find("too short a pepper"), std::string::npos);
}

TEST_F(DoctorTest, ASecretThatOthersCanReadIsAWarning) {
  const std::string open = At("open");
  std::filesystem::create_directory(open);
  ::chmod(folder_.path().c_str(), 0755);
  ::chmod(open.c_str(), 0755);
  WriteFile(open + "/pepper", "a pepper for tests that is longer than 32 characters\n");
  ::chmod((open + "/pepper").c_str(), 0644);
  const std::string text = "auth:\n  pepper: ${file:" + open + "/pepper}\n";
  const Diagnosis diagnosis = Look("auth.yaml", text);
  EXPECT_TRUE(diagnosis.Has("configuration", "warning", "${file:", "every user"))
      << diagnosis.text();
  ::chmod((open + "/pepper").c_str(), 0600);
  EXPECT_EQ(Look("auth.yaml", text).Wrong(), "");
}

TEST_F(DoctorTest, CertificatesThatAreOfNoUseAreNamedWithTheReason) {
  const testing::TestCertificate authority("authority"), other("other authority");
  ::chmod(folder_.path().c_str(), 0755);  // a folder without access for others protects its files
  const auto look = [&](const testing::TestCertificate& certificate,
                        const testing::TestCertificate& authority_of_all, mode_t mode) {
    certificate.Write(At("certificate.pem"), At("key.pem"));
    authority_of_all.WriteCertificate(At("authority.pem"));
    ::chmod(At("key.pem").c_str(), mode);
    return Look("billing.yaml", "host:\n  tls:\n    certificate_file: " + At("certificate.pem") +
                                    "\n    private_key_file: " + At("key.pem") +
                                    "\n    authority_file: " + At("authority.pem") +
                                    "\nbilling: {}\n");
  };
  constexpr int64_t kDays = 86'400;
  const std::string name = "URI:spiffe://tollgate/svc/billing";
  using testing::TestCertificate;
  EXPECT_EQ(look(TestCertificate("x", name, &authority, 60 * kDays), authority, 0600).Wrong(), "");
  EXPECT_TRUE(look(TestCertificate("x", name, &authority, -60), authority, 0600)
                  .Has("certificate", "failure", "billing.yaml host.tls", "expired on"));
  EXPECT_TRUE(look(TestCertificate("x", name, &authority, 3 * kDays + 60), authority, 0600)
                  .Has("certificate", "warning", "billing.yaml host.tls", "expires in 3 days"));
  EXPECT_TRUE(look(TestCertificate("x", "URI:spiffe://tollgate/svc/auth", &authority, 60 * kDays),
                   authority, 0600)
                  .Has("certificate", "failure", "billing.yaml host.tls",
                       "has the name spiffe://tollgate/svc/auth, not "
                       "spiffe://tollgate/svc/billing"));
  EXPECT_TRUE(look(TestCertificate("x", name, &authority, 60 * kDays), other, 0600)
                  .Has("certificate", "failure", "billing.yaml host.tls",
                       "is not signed by the authority"));
  EXPECT_TRUE(look(TestCertificate("x", name, &authority, 60 * kDays), authority, 0644)
                  .Has("certificate", "warning", "billing.yaml host.tls", "can read or change"));
  const TestCertificate good("x", name, &authority, 60 * kDays);
  good.Write(At("certificate.pem"), At("unused"));
  EXPECT_TRUE(Look("billing.yaml", "host:\n  tls:\n    certificate_file: " + At("certificate.pem") +
                                       "\n    private_key_file: " + At("key.pem") +
                                       "\n    authority_file: " + At("authority.pem") +
                                       "\nbilling: {}\n")
                  .Has("certificate", "failure", "billing.yaml host.tls", "does not belong"));
}

TEST_F(DoctorTest, TheCertificateOfThePublicAddressIsForItsHost) {
  const testing::TestCertificate authority("authority");
  const testing::TestCertificate edge("edge", "DNS:api.example.test", &authority, 86'400 * 60);
  edge.Write(At("edge.pem"), At("edge.key"));
  ::chmod(At("edge.key").c_str(), 0600);
  const auto look = [&](const std::string& host) {
    return Look("gateway.yaml", "gateway:\n  base_url: https://" + host +
                                    "\n  edge_tls: {certificate_file: " + At("edge.pem") +
                                    ", private_key_file: " + At("edge.key") + "}\n");
  };
  EXPECT_TRUE(look("api.example.test").Has("certificate", "ok", "gateway.edge_tls", "for api."));
  const Diagnosis wrong = look("other.example.test");
  EXPECT_TRUE(wrong.Has("certificate", "failure", "gateway.edge_tls", "is not for the host"));
  EXPECT_TRUE(wrong.Has("process", "failure", "the public API", "does not answer"))
      << "no such host" << wrong.text();
}

// A process with a wrong clock and another version.
class Stranger : public common::v1::ProcessInfoService::Service {
 public:
  grpc::Status GetProcessInfo(grpc::ServerContext*, const common::v1::GetProcessInfoRequest*,
                              common::v1::GetProcessInfoResponse* response) override {
    response->set_id(service);
    response->set_service(service);
    response->set_version(version);
    response->set_ready(true);
    response->set_now_us(SystemClock::Get().WallUs() + ahead_us);
    return grpc::Status::OK;
  }
  std::string service, version;
  int64_t ahead_us = 0;
};

TEST_F(DoctorTest, ClocksThatDifferAndVersionsThatDifferAreFound) {
  Stranger early, late;
  early.service = "auth";
  early.version = "0.0.1";
  early.ahead_us = 5'000'000;
  late.service = "catalog";
  late.version = "0.0.2";
  late.ahead_us = -600'000;
  int first = 0, second = 0;
  const auto serve = [](Stranger& process, int* port) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), port);
    builder.RegisterService(&process);
    return builder.BuildAndStart();
  };
  const auto early_server = serve(early, &first);
  const auto late_server = serve(late, &second);
  ASSERT_TRUE(early_server && late_server);
  const Diagnosis diagnosis = Look(
      "gateway.yaml",
      "host:\n  insecure_plaintext: true\ntargets:\n  auth: 127.0.0.1:" + std::to_string(first) +
          "\n  catalog: 127.0.0.1:" + std::to_string(second) +
          "\n  billing: 127.0.0.1:" + std::to_string(first) + "\ngateway: {}\n");
  EXPECT_TRUE(diagnosis.Has("process", "failure", "auth at ", "its clock is 5.0 s ahead of"))
      << diagnosis.text();
  EXPECT_TRUE(diagnosis.Has("process", "warning", "catalog at ", " behind this machine's"));
  EXPECT_TRUE(diagnosis.Has("version", "warning", "versions", "several versions"));
}

TEST_F(DoctorTest, ADatabaseThatCanLoseMoneyIsAFailure) {
  testing::TestPostgres* server = testing::TestPostgres::Shared();
  if (server == nullptr) {
    ASSERT_FALSE(testing::TestPostgres::Required());
    GTEST_SKIP() << "PostgreSQL is not installed";
  }
  const std::string url = server->MakeDatabase("doctor");
  const std::string psql = "psql -qX '" + url + "' -v ON_ERROR_STOP=1 -c ";
  const auto sql = [&](const std::string& text) {
    return std::system((psql + "\"" + text + "\" >/dev/null").c_str());  // NOLINT
  };
  const auto look = [&](const std::string& connections = "4") {
    return Look("billing.yaml",
                "billing:\n  sql: {url: \"" + url + "\", connections: " + connections + "}\n");
  };
  EXPECT_TRUE(look().Has("database", "warning", "billing.sql", "no tables of billing yet"));
  ASSERT_EQ(sql("CREATE TABLE schema_migration (component TEXT, version BIGINT); INSERT INTO "
                "schema_migration VALUES ('billing', 3)"),
            0);
  const Diagnosis good = look();
  EXPECT_EQ(good.Wrong(), "");
  EXPECT_TRUE(good.Has("database", "ok", "billing.sql", "schema: billing 3")) << good.text();
  EXPECT_TRUE(look("100").Has("database", "failure", "billing.sql", "max_connections is too low"));
  ASSERT_EQ(sql("INSERT INTO schema_migration VALUES ('auth', 14)"), 0);
  const Diagnosis auth = Look(
      "auth.yaml", "auth:\n  pepper: a pepper for tests that is longer than 32\n  sql: {url: \"" +
                       url + "\", connections: 4}\n");
  EXPECT_TRUE(auth.Has("database", "ok", "auth.sql", "10 wanted by 1 of auth"))
      << "with those of people: " << auth.text();

  ASSERT_EQ(sql("ALTER SYSTEM SET fsync = off"), 0);
  ASSERT_EQ(sql("ALTER SYSTEM SET full_page_writes = off"), 0);
  ASSERT_EQ(sql("ALTER SYSTEM SET autovacuum = off"), 0);
  ASSERT_EQ(sql("ALTER DATABASE doctor SET default_transaction_isolation = 'serializable'"), 0);
  ASSERT_EQ(sql("SELECT pg_reload_conf()"), 0);
  EXPECT_TRUE(WaitUntil(
      [&] { return look().Has("database", "failure", "billing.sql", "fsync is off"); }, 10'000));
  const Diagnosis bad = look();
  EXPECT_TRUE(bad.Has("database", "failure", "billing.sql", "full_page_writes is off"));
  EXPECT_TRUE(bad.Has("database", "warning", "billing.sql", "autovacuum is off"));
  EXPECT_TRUE(bad.Has("database", "warning", "billing.sql", "\"serializable\"")) << bad.text();

  EXPECT_TRUE(Look("auth.yaml",
                   "auth:\n  pepper: a pepper for tests that is longer than 32\n  sql: "
                   "{url: \"postgresql://x:secret@127.0.0.1:" +
                       std::to_string(TestPort().number()) + "/auth\"}\n")
                  .Has("database", "failure", "auth.sql", "postgresql: connect"));
}

TEST_F(DoctorTest, ARedisThatForgetsWhatIsInUseIsAFailure) {
  const auto redis = testing::TestRedis::Start(
      {.lines = {"requirepass " + std::string(kRedisPassword), "maxmemory-policy volatile-ttl"}});
  ASSERT_NE(redis, nullptr);
  WriteFile(At("password"), std::string(kRedisPassword) + "\n");
  const auto look = [&](const std::string& url, const std::string& password = "password") {
    return Look("ratelimit.yaml", "ratelimit:\n  redis_url: " + url +
                                      "\n  redis_password_file: " + At(password) + "\n");
  };
  const auto set = [&](const std::string& name, const std::string& value) {
    const std::string command = "REDISCLI_AUTH=" + std::string(kRedisPassword) + " redis-cli -p " +
                                std::to_string(redis->port()) + " CONFIG SET " + name + " '" +
                                value + "' >/dev/null";
    EXPECT_EQ(std::system(command.c_str()), 0);  // NOLINT
  };
  const Diagnosis good = look(redis->url());
  EXPECT_EQ(good.Wrong(), "");
  EXPECT_TRUE(good.Has("redis", "ok", redis->address(), "maxmemory-policy volatile-ttl"))
      << good.text();
  set("maxmemory-policy", "allkeys-lru");
  EXPECT_TRUE(look(redis->url()).Has("redis", "failure", redis->address(), "allkeys-lru"));
  set("maxmemory-policy", "volatile-lru");
  EXPECT_TRUE(look(redis->url()).Has("redis", "warning", redis->address(), "volatile-lru"));
  set("maxmemory-policy", "noeviction");
  set("appendonly", "yes");
  set("save", "60 1");
  const Diagnosis persistent = look(redis->url());
  EXPECT_TRUE(persistent.Has("redis", "warning", redis->address(), "appendonly is on"));
  EXPECT_TRUE(persistent.Has("redis", "warning", redis->address(), "writes snapshots"));
  WriteFile(At("wrong"), "wrong\n");
  EXPECT_TRUE(look(redis->url(), "wrong").Has("redis", "failure", "", "refuses the password"));
  EXPECT_TRUE(look("redis://" + TestPort().address())
                  .Has("redis", "failure", "", "cannot be reached: Connection refused"));
  EXPECT_TRUE(look("rediss://" + redis->address()).Has("redis", "failure", "", "TLS fails"));
  EXPECT_TRUE(look("http://x").Has("redis", "failure", "", "redis_url"));
  EXPECT_TRUE(Look("ratelimit.yaml", "ratelimit:\n  replicas: 2\n")
                  .Has("redis", "failure", "ratelimit.yaml", "no ratelimit.redis_url"));
}

TEST_F(DoctorTest, ARedisThatSentinelsNameIsFoundAndItsReplicaIsNot) {
  const auto sentinels = testing::TestSentinels::Start();
  ASSERT_NE(sentinels, nullptr);
  const Diagnosis diagnosis =
      Look("ratelimit.yaml", "ratelimit:\n  redis_url: " + sentinels->url() + "\n");
  EXPECT_TRUE(diagnosis.Has("redis", "ok", sentinels->master->address(), "master"))
      << diagnosis.text();
  EXPECT_TRUE(Look("ratelimit.yaml", "ratelimit:\n  redis_url: " + sentinels->replica->url() + "\n")
                  .Has("redis", "failure", sentinels->replica->address(), "it is a replica"));
}

TEST_F(DoctorTest, EnginesAreAskedWhatRoutersNeedOfThem) {
  EngineSimOptions options;
  options.api_key = kEngineKey;
  EngineSim engine(options);
  ASSERT_TRUE(engine.Start());
  const auto look = [&](const std::string& model, const std::string& more) {
    return Look("catalog.yaml", Catalog(engine.base_url(), model, more), "--engines");
  };
  EXPECT_EQ(look("sim/model", WithKey(kEngineKey)).Wrong(), "");
  EXPECT_EQ(engine.totals().requests, 1) << "one request, of one token";
  EXPECT_LE(engine.totals().tokens_generated, 1);
  EXPECT_TRUE(look("sim/model", "").Has("engine", "failure", "sim-1", "the catalog has none"));
  EXPECT_TRUE(look("sim/model", WithKey("another-key"))
                  .Has("engine", "failure", "sim-1", "refuses the API key (401)"));
  EXPECT_TRUE(look("sim/other", WithKey(kEngineKey))
                  .Has("engine", "failure", "sim-1", "does not serve \"sim/other\""));
  engine.SetDefaultScript(R"({"usage":"none","tokenizer_status":404})");
  const Diagnosis silent = look("sim/model", WithKey(kEngineKey));
  EXPECT_TRUE(silent.Has("engine", "failure", "sim-1", "reports no usage when it streams"))
      << silent.text();
  EXPECT_TRUE(silent.Has("engine", "warning", "sim-1", "its tokenizer (/tokenize) says 404"));
  engine.SetDefaultScript(
      R"({"raw_chunks":["data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"x\"}}]}\n\n",
      "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":1,\"completion_tokens\":1}}\n\ndata: [DONE]\n\n"]})");
  EXPECT_TRUE(look("sim/model", WithKey(kEngineKey))
                  .Has("engine", "warning", "sim-1", "at the end only, not on each chunk"));
  engine.SetDefaultScript(R"({"status":500})");
  EXPECT_TRUE(look("sim/model", WithKey(kEngineKey))
                  .Has("engine", "failure", "sim-1", "refuses a request of one token: 500"));
  EXPECT_TRUE(Look("catalog.yaml", Catalog("http://" + TestPort().address(), "sim/model", ""))
                  .Has("engine", "failure", "sim-1", "cannot be reached"));
}

TEST_F(DoctorTest, TooFewOpenFilesAreAWarning) {
  const std::string text = "gateway:\n  max_connections: 20000\n";
  const Diagnosis few = Look("gateway.yaml", text, "", "ulimit -n 1024;");
  EXPECT_TRUE(few.Has("machine", "warning", "gateway.yaml open files", "1024, 22858 are needed"))
      << few.text();
  EXPECT_TRUE(Look("gateway.yaml", "gateway:\n  max_connections: 100\n", "", "ulimit -n 1024;")
                  .Has("machine", "ok", "gateway.yaml open files", "1024, 356 are needed"));
}

}  // namespace
}  // namespace tollgate::test
