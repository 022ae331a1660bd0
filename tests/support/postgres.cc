#include "tests/support/postgres.h"

#include <fcntl.h>
#include <libpq-fe.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <thread>
#include <vector>

namespace tollgate::testing {
namespace {

namespace fs = std::filesystem;

// PostgreSQL refuses to run as root: it then runs as user nobody.
std::vector<std::string> Unprivileged(std::vector<std::string> command) {
  std::vector<std::string> full = {"/usr/bin/setpriv", "--pdeathsig", "QUIT"};
  if (geteuid() == 0) {
    full.insert(full.end(), {"--reuid", "nobody", "--regid", "nogroup", "--clear-groups"});
  }
  full.push_back("--");
  full.insert(full.end(), command.begin(), command.end());
  return full;
}

pid_t Spawn(const std::vector<std::string>& command, const std::string& log) {
  std::vector<char*> argv;
  for (const std::string& word : command) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  const pid_t pid = fork();
  if (pid != 0) return pid;
  const int out = open(log.c_str(), O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC, 0644);
  const int in = open("/dev/null", O_RDONLY | O_CLOEXEC);
  dup2(in, 0);
  dup2(out, 1);
  dup2(out, 2);
  if (chdir("/") == 0) execv(argv[0], argv.data());
  _exit(127);
}

// Parent of a running process; -1 for one that has exited, reaped or not.
pid_t ParentOf(pid_t pid) {
  FILE* file = std::fopen(("/proc/" + std::to_string(pid) + "/stat").c_str(), "re");
  if (file == nullptr) return -1;
  char state = 'Z';
  int parent = -1;
  const int fields = std::fscanf(file, "%*d (%*[^)]) %c %d", &state, &parent);
  std::fclose(file);
  return fields == 2 && state != 'Z' ? parent : -1;
}

// "postgres: tollgate billing [local] idle": the first word of a process that serves a connection
// is its user.
bool ServesAConnection(pid_t pid) {
  FILE* file = std::fopen(("/proc/" + std::to_string(pid) + "/cmdline").c_str(), "re");
  if (file == nullptr) return false;
  char text[64] = {};
  const size_t size = std::fread(text, 1, sizeof text - 1, file);
  std::fclose(file);
  return std::string_view(text, size).starts_with("postgres: tollgate ");
}

void WaitForEnd(const std::vector<pid_t>& pids) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (std::chrono::steady_clock::now() < deadline &&
         std::any_of(pids.begin(), pids.end(), [](pid_t pid) { return ParentOf(pid) >= 0; })) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

bool WaitForSuccess(pid_t pid) {
  int status = 0;
  return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) &&
         WEXITSTATUS(status) == 0;
}

// The command that fills a data directory. ./dev test runs initdb once for all suites, which takes
// ten times as long as a copy (TOLLGATE_TEST_INITDB).
std::vector<std::string> MakeCluster(const std::string& bin, const std::string& data) {
  if (const char* made = std::getenv("TOLLGATE_TEST_INITDB")) {
    return {"/bin/cp", "-R", "--preserve=mode", made, data};
  }
  return {
      bin + "/initdb", "-D",       data,      "-U",        "tollgate",         "-A", "trust", "-E",
      "UTF8",          "--locale", "C.UTF-8", "--no-sync", "--no-instructions"};
}

}  // namespace

std::string PostgresBin() {
  if (const char* given = std::getenv("TOLLGATE_PG_BIN")) return given;
  std::string best;
  std::error_code error;
  for (const auto& version : fs::directory_iterator("/usr/lib/postgresql", error)) {
    const fs::path bin = version.path() / "bin";
    if (fs::exists(bin / "initdb", error) && bin.string() > best) best = bin.string();
  }
  return best;
}

bool TestPostgres::Required() { return std::getenv("TOLLGATE_REQUIRE_POSTGRES") != nullptr; }

std::unique_ptr<TestPostgres> TestPostgres::Make() {
  std::unique_ptr<TestPostgres> server(new TestPostgres);
  server->bin_ = PostgresBin();
  if (server->bin_.empty()) return nullptr;
  std::string root = (fs::temp_directory_path() / "tollgate-pg-XXXXXX").string();
  if (mkdtemp(root.data()) == nullptr) return nullptr;
  server->root_ = root;
  std::error_code error;
  fs::permissions(root, fs::perms::all, error);
  return server;
}

std::unique_ptr<TestPostgres> TestPostgres::Start() { return Start(std::vector<std::string>()); }

std::unique_ptr<TestPostgres> TestPostgres::Start(const std::vector<std::string>& settings) {
  auto server = Make();
  if (!server) return nullptr;
  server->settings_ = settings;
  if (!WaitForSuccess(Spawn(Unprivileged(MakeCluster(server->bin_, server->root_ + "/data")),
                            server->root_ + "/log")) ||
      !server->Run()) {
    return nullptr;
  }
  return server;
}

bool TestPostgres::CitusInstalled() {
  const std::string bin = PostgresBin();
  if (bin.empty()) return false;
  const std::string version = fs::path(bin).parent_path().filename();
  return fs::exists("/usr/share/postgresql/" + version + "/extension/citus.control");
}

std::unique_ptr<TestPostgres> TestPostgres::StartCitus(int workers) {
  if (!CitusInstalled()) return nullptr;
  // Nodes reach each other by unix sockets, which have no TLS.
  const std::vector<std::string> settings = {
      "shared_preload_libraries=citus", "wal_level=logical", "max_prepared_transactions=200",
      "citus.recover_2pc_interval=1s", "citus.node_conninfo=sslmode=disable"};
  auto coordinator = Start(settings);
  for (int i = 0; coordinator && i < workers; ++i) {
    auto worker = Start(settings);
    if (!worker) return nullptr;
    worker->AllowCitusToCopy();
    coordinator->workers_.push_back(std::move(worker));
  }
  return coordinator;
}

void TestPostgres::AllowCitusToCopy() {
  // Versions before 15.20 neither have nor need this setting.
  (void)(Execute("ALTER SYSTEM SET output_plugin_libraries = pgoutput, citus") &&
         Execute("SELECT pg_reload_conf()"));
}

TestPostgres* TestPostgres::AddWorker(const std::string& database) {
  auto worker = Start(settings_);
  if (!worker) return nullptr;
  worker->AllowCitusToCopy();
  worker->CreateDatabase(database);
  if (!worker->Execute("CREATE EXTENSION citus", database) ||
      !Execute("SELECT citus_add_node(" + worker->Node() + ")", database)) {
    return nullptr;
  }
  workers_.push_back(std::move(worker));
  return workers_.back().get();
}

std::unique_ptr<TestPostgres> TestPostgres::StartStandby() {
  auto standby = Make();
  if (!standby) return nullptr;
  const std::string data = standby->root_ + "/data";
  // -R: it follows this server once it runs.
  if (!WaitForSuccess(
          Spawn(Unprivileged({bin_ + "/pg_basebackup", "-D", data, "-R", "-X", "stream", "-c",
                              "fast", "--no-sync", "-d", "user=tollgate host=" + root_}),
                standby->log_file())) ||
      !standby->Run()) {
    return nullptr;
  }
  // Set after the copy, so that the standby does not wait for another standby when it is promoted.
  if (!Execute("ALTER SYSTEM SET synchronous_standby_names = '*'") ||
      !Execute("SELECT pg_reload_conf()")) {
    return nullptr;
  }
  return standby;
}

bool TestPostgres::Promote() { return Execute("SELECT pg_promote(true, 60)"); }

bool TestPostgres::Execute(const std::string& sql, const std::string& database) const {
  PGconn* connection = PQconnectdb(Url(database).c_str());
  PGresult* result = PQexec(connection, sql.c_str());
  const ExecStatusType status = PQresultStatus(result);
  const bool done = status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK;
  if (!done) std::fprintf(stderr, "%s: %s", sql.c_str(), PQerrorMessage(connection));
  PQclear(result);
  PQfinish(connection);
  return done;
}

std::unique_ptr<TestPostgres> TestPostgres::StartStore() {
  return std::getenv("TOLLGATE_TEST_CITUS") == nullptr ? Start() : StartCitus(2);
}

TestPostgres* TestPostgres::Shared() {
  static const std::unique_ptr<TestPostgres> server = StartStore();
  return server.get();
}

TestPostgres::~TestPostgres() {
  Kill();
  std::error_code error;
  if (!root_.empty()) fs::remove_all(root_, error);
}

std::string TestPostgres::Url(const std::string& database) const {
  return "postgresql:///" + database + "?user=tollgate&host=" + root_;
}

std::string TestPostgres::UrlOf(const std::vector<const TestPostgres*>& servers,
                                const std::string& database) {
  std::string hosts;
  for (const TestPostgres* server : servers) hosts += (hosts.empty() ? "" : ",") + server->root_;
  return "postgresql:///" + database + "?user=tollgate&host=" + hosts;
}

void TestPostgres::CreateDatabase(const std::string& name, const std::string& source) const {
  // DROP is refused while a transaction of Citus is prepared in the old database. Citus looks for
  // such transactions each 5 s, in a session that waits for the drop, which waits for it for 5 s:
  // the next attempt must not begin at the same moment again.
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!Execute("DROP DATABASE IF EXISTS " + name + " WITH (FORCE)") ||
         !Execute("CREATE DATABASE " + name + " TEMPLATE " + source)) {
    if (std::chrono::steady_clock::now() > deadline) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(1300));
  }
}

std::string TestPostgres::MakeDatabase(const std::string& name) {
  CreateDatabase(name);
  if (workers_.empty()) return Url(name);
  bool made = Execute("CREATE EXTENSION citus", name) &&
              Execute("SELECT citus_set_coordinator_host(" + Node() + ")", name);
  for (const auto& worker : workers_) {
    worker->CreateDatabase(name);
    made = made && worker->Execute("CREATE EXTENSION citus", name) &&
           Execute("SELECT citus_add_node(" + worker->Node() + ")", name);
  }
  return made ? Url(name) : "";
}

std::string TestPostgres::MakeDatabase(const std::string& name, const std::string& schema,
                                       const std::function<void(const std::string&)>& migrate) {
  if (!workers_.empty()) {
    const std::string url = MakeDatabase(name);
    migrate(url);
    return url;
  }
  const std::string source = "schema_" + schema;
  if (schemas_.insert(schema).second) migrate(MakeDatabase(source));
  CreateDatabase(name, source);
  return Url(name);
}

bool TestPostgres::Run() {
  std::vector<std::string> command = {bin_ + "/postgres", "-D", root_ + "/data", "-k", root_, "-c",
                                      "listen_addresses=", "-c", "max_connections=50", "-c",
                                      "shared_buffers=64MB",
                                      // A killed server leaves its other segments in /dev/shm.
                                      "-c", "dynamic_shared_memory_type=mmap"};
  for (const std::string& setting : settings_) command.insert(command.end(), {"-c", setting});
  // The address at which Citus finds the server itself.
  if (!settings_.empty()) command.insert(command.end(), {"-c", "citus.local_hostname=" + root_});
  pid_ = Spawn(Unprivileged(command), root_ + "/log");
  return WaitReady();
}

bool TestPostgres::WaitReady() {
  const std::string url = Url("postgres");
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (std::chrono::steady_clock::now() < deadline) {
    if (PQping(url.c_str()) == PQPING_OK) return true;
    if (waitpid(pid_, nullptr, WNOHANG) == pid_) {
      pid_ = -1;
      return false;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

std::vector<pid_t> TestPostgres::Pids(Part part) const {
  std::vector<pid_t> pids;
  if (pid_ > 0 && part != Part::kSessions) pids.push_back(pid_);
  if (pid_ <= 0 || part == Part::kParent) return pids;
  // Each backend leads its own session, so they are found by their parent.
  std::error_code error;
  for (const auto& entry : fs::directory_iterator("/proc", error)) {
    const pid_t pid = std::atoi(entry.path().filename().c_str());
    if (pid <= 0 || ParentOf(pid) != pid_) continue;
    if (part == Part::kAll || ServesAConnection(pid)) pids.push_back(pid);
  }
  return pids;
}

void TestPostgres::Kill() {
  if (pid_ <= 0) return;
  kill(pid_, SIGSTOP);  // no new sessions
  const std::vector<pid_t> pids = Pids(Part::kAll);
  for (const pid_t pid : pids) kill(pid, SIGKILL);
  frozen_.clear();
  waitpid(pid_, nullptr, 0);
  // A backend that has not exited yet keeps the shared memory, and the next start would fail.
  WaitForEnd(pids);
  pid_ = -1;
}

void TestPostgres::KillSession(pid_t pid) {
  const std::vector<pid_t> sessions = Pids(Part::kSessions);
  kill(pid, SIGKILL);
  WaitForEnd(sessions);
}

void TestPostgres::Freeze() { kill(pid_, SIGSTOP); }

void TestPostgres::Thaw() { kill(pid_, SIGCONT); }

void TestPostgres::FreezeAll() {
  Freeze();  // no new sessions
  frozen_ = Pids(Part::kAll);
  for (const pid_t pid : frozen_) kill(pid, SIGSTOP);
}

void TestPostgres::ThawAll() {
  for (const pid_t pid : frozen_) kill(pid, SIGCONT);
  frozen_.clear();
}

void TestPostgres::Stop() {
  if (pid_ <= 0) return;
  kill(pid_, SIGINT);  // fast shutdown
  waitpid(pid_, nullptr, 0);
  pid_ = -1;
}

}  // namespace tollgate::testing
