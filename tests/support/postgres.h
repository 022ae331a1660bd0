// A private PostgreSQL server for tests, from Debian's package: a data folder in a temporary
// place, a unix socket, no TCP port. It is killed with the process that started it.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace tollgate::testing {

// The folder of the newest PostgreSQL's programs (TOLLGATE_PG_BIN when set); empty: none is
// installed.
std::string PostgresBin();

class TestPostgres {
 public:
  // Null when PostgreSQL is not installed; then tests skip, unless TOLLGATE_REQUIRE_POSTGRES is
  // set. Takes about two seconds; a binary's tests should share one (Shared).
  static std::unique_ptr<TestPostgres> Start();
  // Several servers with the extension Citus, of which this one is the coordinator: MakeDatabase
  // makes a database that tables of can be distributed over the others. Null where CitusInstalled
  // is false.
  static std::unique_ptr<TestPostgres> StartCitus(int workers);
  static bool CitusInstalled();
  // A standby of this server, which from then on acknowledges no commit that the standby does not
  // have. It answers reads only until Promote. Null when it could not be made.
  std::unique_ptr<TestPostgres> StartStandby();
  // Makes a standby the primary.
  bool Promote();
  // What tests of the ledger run on: as Start, or with TOLLGATE_TEST_CITUS in the environment as
  // StartCitus with two workers.
  static std::unique_ptr<TestPostgres> StartStore();
  // One of these for the whole test binary, started on first use and stopped at exit. May be null.
  static TestPostgres* Shared();
  // Whether a missing server must fail the test instead of skipping it.
  static bool Required();

  ~TestPostgres();
  TestPostgres(const TestPostgres&) = delete;
  TestPostgres& operator=(const TestPostgres&) = delete;

  // The servers of Citus that a coordinator distributes tables over.
  TestPostgres& worker(int number) { return *workers_[static_cast<size_t>(number)]; }
  int workers() const { return static_cast<int>(workers_.size()); }
  // Starts one more for a database that has been made.
  TestPostgres* AddWorker(const std::string& database);

  // Creates an empty database of that name (letters, digits, _) and returns its connection URL.
  std::string MakeDatabase(const std::string& name);
  // The same with the tables of `schema`, which `migrate` creates once, in a database of its own
  // that the others are copied from: much quicker. Servers of Citus cannot copy: there `migrate`
  // runs each time.
  std::string MakeDatabase(const std::string& name, const std::string& schema,
                           const std::function<void(const std::string& url)>& migrate);
  std::string Url(const std::string& database) const;
  // The URL of a database that has one of several servers as its primary, in this order.
  static std::string UrlOf(const std::vector<const TestPostgres*>& servers,
                           const std::string& database);
  // Of its socket; also its name as a node of Citus.
  const std::string& folder() const { return root_; }
  std::string log_file() const { return root_ + "/log"; }

  // The processes of the server: its parent, those that serve a connection, all of them.
  enum class Part { kParent, kSessions, kAll };
  std::vector<pid_t> Pids(Part part) const;
  // One statement as the superuser; whether it succeeded.
  bool Execute(const std::string& sql, const std::string& database = "postgres") const;
  // Kills every process of the server with -9. Run starts it again (with crash recovery).
  void Kill();
  // Stops the process that takes connections and requests to cancel (SIGSTOP), and lets it go on.
  // Sessions go on meanwhile.
  void Freeze();
  // Stops all of its processes, and lets them go on: connections stay open, nothing is answered.
  void FreezeAll();
  void ThawAll();
  void Thaw();
  // Fast shutdown, closing connections.
  void Stop();
  // False when the server is not ready within a minute: recovery flushes every file.
  bool Run();
  // Kills one of its sessions. The server ends the others too and recovers by itself; returns when
  // all have ended.
  void KillSession(pid_t pid);
  // Until it accepts connections.
  bool WaitReady();

 private:
  TestPostgres() = default;
  // With an empty folder of its own; null when PostgreSQL is not installed.
  static std::unique_ptr<TestPostgres> Make();
  static std::unique_ptr<TestPostgres> Start(const std::vector<std::string>& settings);
  // For pieces that move while they are used.
  void AllowCitusToCopy();
  void CreateDatabase(const std::string& name, const std::string& source = "template0") const;
  // For the host and port of this server in statements of Citus.
  std::string Node() const { return "'" + root_ + "', 5432"; }
  std::vector<std::string> settings_;  // of the server, NAME=VALUE
  std::vector<std::unique_ptr<TestPostgres>> workers_;
  std::set<std::string> schemas_;  // of which there is a database to copy
  std::string bin_;
  std::string root_;
  pid_t pid_ = -1;
  std::vector<pid_t> frozen_;
};

}  // namespace tollgate::testing
