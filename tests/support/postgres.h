// A private PostgreSQL server for tests, from Debian's package: its own data folder in a temporary
// place, a unix socket, no TCP port. It dies with the process that started it.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>

namespace tollgate::testing {

class TestPostgres {
 public:
  // Null when PostgreSQL is not installed; then tests skip, unless TOLLGATE_REQUIRE_POSTGRES is
  // set. Takes about two seconds; a binary's tests should share one (Shared).
  static std::unique_ptr<TestPostgres> Start();
  // One for the whole test binary, started on first use and stopped at exit. May be null.
  static TestPostgres* Shared();
  // Whether a missing server must fail the test instead of skipping it.
  static bool Required();

  ~TestPostgres();
  TestPostgres(const TestPostgres&) = delete;
  TestPostgres& operator=(const TestPostgres&) = delete;

  // Makes an empty database of that name (letters, digits, _) and returns its connection URL.
  std::string MakeDatabase(const std::string& name);
  std::string Url(const std::string& database) const;

  // Kills every process of the server with -9. Run brings it up again (with crash recovery).
  void Kill();
  // Stops it in order, dropping connections.
  void Stop();
  // False when the server does not answer within ten seconds.
  bool Run();

 private:
  TestPostgres() = default;
  std::string bin_;
  std::string root_;
  pid_t pid_ = -1;
};

}  // namespace tollgate::testing
