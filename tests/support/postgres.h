// A private PostgreSQL server for tests, from Debian's package: data in a temporary folder, a unix
// socket, no TCP port. It is killed with the process that started it.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace tollgate::testing {

// The program folder of the newest PostgreSQL (TOLLGATE_PG_BIN when set); empty: none is installed.
std::string PostgresBin();

class TestPostgres {
 public:
  // Returns nullptr when PostgreSQL is not installed; tests then skip, unless
  // TOLLGATE_REQUIRE_POSTGRES is set. Takes about two seconds; the tests of a binary should share
  // one (Shared).
  static std::unique_ptr<TestPostgres> Start();
  // Starts several servers with the extension Citus; this one is the coordinator. MakeDatabase
  // creates a database whose tables can be distributed over the others. Returns nullptr where
  // CitusInstalled is false.
  static std::unique_ptr<TestPostgres> StartCitus(int workers);
  static bool CitusInstalled();
  // Adds a synchronous standby: this server then acknowledges only commits that the standby has.
  // The standby answers reads only until Promote. Returns nullptr on failure.
  std::unique_ptr<TestPostgres> StartStandby();
  // Makes a standby the primary.
  bool Promote();
  // Starts the store for tests of the ledger: like Start, or with TOLLGATE_TEST_CITUS in the
  // environment like StartCitus with two workers.
  static std::unique_ptr<TestPostgres> StartStore();
  // One server for the whole test binary, started on first use and stopped at exit. May be null.
  static TestPostgres* Shared();
  // Whether a missing server must fail the test instead of skipping it.
  static bool Required();

  ~TestPostgres();
  TestPostgres(const TestPostgres&) = delete;
  TestPostgres& operator=(const TestPostgres&) = delete;

  // Servers of Citus over which a coordinator distributes tables.
  TestPostgres& worker(int number) { return *workers_[static_cast<size_t>(number)]; }
  int workers() const { return static_cast<int>(workers_.size()); }
  // Starts one more worker for an existing database.
  TestPostgres* AddWorker(const std::string& database);

  // Creates an empty database of that name (letters, digits, _) and returns its connection URL.
  std::string MakeDatabase(const std::string& name);
  // The same with the tables of `schema`, which `migrate` creates once, in a database of its own
  // that the others are copied from: much quicker. Servers of Citus cannot copy: there `migrate`
  // runs each time.
  std::string MakeDatabase(const std::string& name, const std::string& schema,
                           const std::function<void(const std::string& url)>& migrate);
  std::string Url(const std::string& database) const;
  // URL of a database whose primary is one of several servers, in this order.
  static std::string UrlOf(const std::vector<const TestPostgres*>& servers,
                           const std::string& database);
  // Folder of its socket; also its name as a node of Citus.
  const std::string& folder() const { return root_; }
  std::string log_file() const { return root_ + "/log"; }

  // Processes of the server: its parent, the ones that serve a connection, all of them.
  enum class Part { kParent, kSessions, kAll };
  std::vector<pid_t> Pids(Part part) const;
  // Runs one statement as the superuser; returns whether it succeeded.
  bool Execute(const std::string& sql, const std::string& database = "postgres") const;
  // Kills every process of the server with -9. Run starts it again (with crash recovery).
  void Kill();
  // Stops the process that accepts connections and cancel requests (SIGSTOP), and continues it.
  // Sessions are not affected.
  void Freeze();
  // Stops and continues all of its processes: connections stay open without a response.
  void FreezeAll();
  void ThawAll();
  void Thaw();
  // Fast shutdown, closing connections.
  void Stop();
  // Returns false when the server is not ready within a minute: recovery flushes every file.
  bool Run();
  // Kills one of its sessions. The server ends the others too and recovers by itself; returns when
  // all have ended.
  void KillSession(pid_t pid);
  // Waits until it accepts connections.
  bool WaitReady();

 private:
  TestPostgres() = default;
  // Makes a server with an empty folder; nullptr when PostgreSQL is not installed.
  static std::unique_ptr<TestPostgres> Make();
  static std::unique_ptr<TestPostgres> Start(const std::vector<std::string>& settings);
  // Allows Citus to move shards while they are used.
  void AllowCitusToCopy();
  void CreateDatabase(const std::string& name, const std::string& source = "template0") const;
  // Host and port of this server for statements of Citus.
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
