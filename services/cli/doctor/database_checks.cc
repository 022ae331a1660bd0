#include <sys/stat.h>
#include <sys/statfs.h>

#include <charconv>
#include <filesystem>
#include <map>
#include <string_view>

#include "common/base/clock.h"
#include "common/sql/beside.h"
#include "services/cli/doctor/probe.h"

namespace tollgate::cli {
namespace {

// Connections of a program without sql.connections, billing's archive included.
constexpr int kDefaultPoolSize = 4;
constexpr int kBesidePool = 2;
// Connections of people, which runs in the process of auth.
constexpr int kPeoplePool = 4;
// Oldest tested version. PostgreSQL 14 has no known problem, but is untested.
constexpr int64_t kTestedPostgres = 150'000;

struct Base {
  std::string subject;  // configuration file and field
  std::string url;
  std::string service;
  int connections = kDefaultPoolSize;
  // Number of replicas in the targets.
  int replicas = 1;
};

class Postgres {
 public:
  Postgres(const Base& base, sql::Connection& connection, Findings& findings)
      : base_(base), connection_(connection), findings_(findings) {}

  void Look() {
    ReadSettings();
    if (settings_.empty()) return;
    MustBe("fsync", "on", "a crash of the machine can lose or damage acknowledged money");
    MustBe("full_page_writes", "on",
           "a crash of the machine can damage pages that were half written");
    if (settings_["autovacuum"] != "on") {
      Warn("autovacuum is off: tables and indexes grow without end", "autovacuum = on");
    }
    Version();
    Isolation();
    Commit();
    Connections();
    Role();
    Migrations();
    Clock();
    if (!wrong_) {
      findings_.push_back(Ok(base_.subject, "PostgreSQL " + settings_["server_version"] + said_));
    }
  }

 private:
  void Bad(const std::string& finding, const std::string& advice) {
    wrong_ = true;
    findings_.push_back(Failure(base_.subject, finding, advice));
  }
  void Warn(const std::string& finding, const std::string& advice) {
    wrong_ = true;
    findings_.push_back(Warning(base_.subject, finding, advice));
  }

  void ReadSettings() {
    const auto read = connection_.Query(
        "SELECT name, setting FROM pg_settings WHERE name IN ('fsync', 'full_page_writes', "
        "'autovacuum', 'server_version', 'server_version_num', 'max_connections', "
        "'superuser_reserved_connections', 'default_transaction_isolation', "
        "'synchronous_standby_names', 'synchronous_commit')",
        {}, [this](const sql::Row& row) { settings_[row.Text(0)] = row.Text(1); });
    if (!read.ok()) Bad("the settings cannot be read: " + read.error().message, "see its log");
  }

  int64_t Number(const std::string& name) {
    const std::string& text = settings_[name];
    int64_t number = 0;
    std::from_chars(text.data(), text.data() + text.size(), number);
    return number;
  }

  void MustBe(const std::string& name, const std::string& value, const std::string& why) {
    if (settings_[name] == value) return;
    Bad(name + " is " + settings_[name] + ": " + why,
        "set " + name + " = " + value + " in postgresql.conf and restart the server");
  }

  void Version() {
    if (Number("server_version_num") >= kTestedPostgres) return;
    Warn("PostgreSQL " + settings_["server_version"] + ": tested with 15 and later",
         "upgrade the server");
  }

  // Statements lock the rows that they read, so a stricter level only causes more retries.
  void Isolation() {
    const std::string& level = settings_["default_transaction_isolation"];
    if (level == "read committed") return;
    Warn("default_transaction_isolation is \"" + level +
             "\": the ledger locks rows for what it needs, and would repeat failed transactions",
         "set default_transaction_isolation = 'read committed' for the user or the database");
  }

  // The programs set synchronous_commit = on for each session, whatever the server's default is.
  void Commit() {
    said_ += settings_["synchronous_standby_names"].empty() ? ", commits are on this server's disk"
                                                            : ", commits wait for a standby";
  }

  void Connections() {
    const int64_t reserved = Number("superuser_reserved_connections");
    const int64_t most = Number("max_connections") - reserved;
    int64_t taken = 0;
    const auto read = connection_.Query(
        "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> "
        "pg_backend_pid()",
        {}, [&](const sql::Row& row) { taken = row.Int(0); });
    const int64_t wanted = int64_t{base_.connections + kBesidePool} * base_.replicas;
    if (!read.ok()) return;
    const std::string numbers = std::to_string(wanted) + " wanted by " +
                                std::to_string(base_.replicas) + " of " + base_.service + ", " +
                                std::to_string(taken) + " open, " + std::to_string(most) +
                                " allowed";
    if (wanted > most) {
      Bad("max_connections is too low: " + numbers,
          "raise max_connections, or lower sql.connections");
    } else if (wanted * 5 > most * 4 || taken * 5 > most * 4) {
      Warn("max_connections is almost used up: " + numbers,
           "raise max_connections, or lower sql.connections of those that share the server");
    } else {
      said_ += ", connections: " + numbers;
    }
  }

  void Role() {
    bool standby = false;
    const auto read =
        connection_.Query("SELECT CASE WHEN pg_is_in_recovery() THEN 1 ELSE 0 END", {},
                          [&](const sql::Row& row) { standby = row.Int(0) != 0; });
    if (read.ok() && standby) {
      Bad("it is a standby, which takes no writes", "correct the address, or promote the server");
    }
  }

  void Migrations() {
    std::string components;
    const auto read = connection_.Query(
        "SELECT component, max(version) FROM schema_migration GROUP BY component ORDER BY 1", {},
        [&](const sql::Row& row) {
          components +=
              (components.empty() ? "" : ", ") + row.Text(0) + " " + std::to_string(row.Int(1));
        });
    if (!read.ok() || components.empty()) {
      Warn("it has no tables of " + base_.service + " yet",
           "start " + base_.service +
               ", which makes them; if it ran before, this is the wrong "
               "database");
    } else {
      said_ += ", schema: " + components;
    }
  }

  void Clock() {
    int64_t theirs_us = 0;
    const int64_t asked_us = SystemClock::Get().WallUs();
    const auto read =
        connection_.Query("SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS BIGINT)",
                          {}, [&](const sql::Row& row) { theirs_us = row.Int(0); });
    const int64_t answered_us = SystemClock::Get().WallUs();
    if (!read.ok()) return;
    Finding finding = ClockFinding(base_.subject, ReadClock(theirs_us, asked_us, answered_us));
    if (finding.verdict == Verdict::kOk) {
      said_ += ", " + finding.finding;
    } else {
      wrong_ = true;
      findings_.push_back(std::move(finding));
    }
  }

  const Base& base_;
  sql::Connection& connection_;
  Findings& findings_;
  std::map<std::string, std::string> settings_;
  std::string said_;
  bool wrong_ = false;
};

// Why a file system is unsuitable for a SQLite ledger, or "".
std::string FileSystemFault(const std::string& path, bool* lost_at_reboot) {
  struct statfs system{};
  if (::statfs(path.c_str(), &system) != 0) return "";
  switch (static_cast<uint64_t>(system.f_type)) {
    case 0x6969:      // NFS
    case 0xFF534D42:  // CIFS
    case 0xFE534D42:  // SMB2
    case 0x564c:      // NCP
      return "it is on a network file system, where SQLite's log and locks do not work";
    case 0x65735546:
      return "it is on a FUSE file system, which has its own locks and flushes";
    case 0x01021994:  // tmpfs
    case 0x858458F6:  // ramfs
      *lost_at_reboot = true;
      return "it is in memory: a reboot loses it";
    default:
      return "";
  }
}

void LookAtSqlite(const Base& base, const std::string& path, sql::Connection& connection,
                  Findings& findings) {
  const size_t before = findings.size();
  bool lost_at_reboot = false;
  if (const std::string fault = FileSystemFault(path, &lost_at_reboot); !fault.empty()) {
    findings.push_back({lost_at_reboot ? Verdict::kWarning : Verdict::kFailure, base.subject, fault,
                        "move it to a local disk, or use PostgreSQL"});
  }
  struct stat status{};
  if (::stat(path.c_str(), &status) == 0 && (status.st_mode & 077) != 0) {
    findings.push_back(Warning(base.subject, "other users can open " + path,
                               "chmod 600 " + path + "; the next start does it, too"));
  }
  std::string mode, components;
  const auto read =
      connection.Query("PRAGMA journal_mode", {}, [&](const sql::Row& row) { mode = row.Text(0); });
  if (!read.ok() || mode != "wal") {
    findings.push_back(Failure(base.subject,
                               "its journal mode is " + (read.ok() ? mode : "unknown"),
                               "it is used by another program, or its folder cannot be written"));
  }
  const auto tables = connection.Query(
      "SELECT component, max(version) FROM schema_migration GROUP BY component ORDER BY 1", {},
      [&](const sql::Row& row) {
        components +=
            (components.empty() ? "" : ", ") + row.Text(0) + " " + std::to_string(row.Int(1));
      });
  if (!tables.ok() || components.empty()) {
    findings.push_back(Warning(base.subject, "it has no tables of " + base.service + " yet",
                               "start " + base.service + ", which makes them"));
  }
  if (findings.size() == before) {
    findings.push_back(Ok(base.subject, "SQLite, journal mode WAL, schema: " + components));
  }
}

Findings LookAt(const Base& base) {
  constexpr std::string_view kSqlite = "sqlite:";
  const bool sqlite = base.url.starts_with(kSqlite);
  const std::string path = sqlite ? base.url.substr(kSqlite.size()) : "";
  if (sqlite && !std::filesystem::exists(path)) {
    return {
        Warning(base.subject, "the database " + path + " is not there",
                "start " + base.service + ", which makes it; or run the doctor on its machine")};
  }
  auto connection = sql::ConnectBeside(base.url, /*read_only=*/true);
  if (!connection.ok()) {
    return {Failure(base.subject, connection.error().message,
                    sqlite ? "run the doctor as the user of the process"
                           : "start the server, correct sql.url (host, user, password, database), "
                             "or open the way to it (pg_hba.conf, firewall)")};
  }
  Findings findings;
  if (sqlite) {
    LookAtSqlite(base, path, **connection, findings);
  } else {
    Postgres(base, **connection, findings).Look();
  }
  return findings;
}

int ReplicasOf(const Inventory& inventory, const std::string& service) {
  size_t most = 1;
  for (const ServiceConfig& one : inventory.services) {
    const auto& targets = one.config.targets();
    const std::string& addresses = service == "auth" ? targets.auth() : targets.billing();
    most = std::max(most, SplitAddresses(addresses).size());
  }
  return static_cast<int>(most);
}

}  // namespace

void AddDatabaseChecks(const Inventory& inventory, const DoctorOptions&, Checks& checks) {
  const auto add = [&](const ServiceConfig& service, const char* name,
                       const config::v1::SqlConfig& sql) {
    if (sql.url().empty()) return;
    Base base{.subject = service.path + " " + name + ".sql",
              .url = sql.url(),
              .service = name,
              .connections = (sql.connections() > 0 ? sql.connections() : kDefaultPoolSize) +
                             (std::string_view(name) == "auth" ? kPeoplePool : 0),
              .replicas = ReplicasOf(inventory, name)};
    const std::string subject = base.subject;
    checks.push_back({"database", subject, [base = std::move(base)] { return LookAt(base); }});
  };
  for (const ServiceConfig& service : inventory.services) {
    add(service, "auth", service.config.auth().sql());
    add(service, "billing", service.config.billing().sql());
  }
}

}  // namespace tollgate::cli
