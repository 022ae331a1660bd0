#include <charconv>
#include <map>
#include <set>

#include "common/base/clock.h"
#include "common/config/substitute.h"
#include "services/cli/doctor/probe.h"
#include "services/cli/doctor/redis_connection.h"

namespace tollgate::cli {
namespace {

using redis::Endpoint;
using redis::RedisUrl;

constexpr int kTestedVersion = 7;

// "name:value" lines of INFO.
std::map<std::string, std::string> ParseInfo(const std::string& text) {
  std::map<std::string, std::string> info;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find("\r\n", at), text.size());
    const std::string line = text.substr(at, end - at);
    if (const size_t colon = line.find(':'); colon != std::string::npos) {
      info[line.substr(0, colon)] = line.substr(colon + 1);
    }
    at = end + 2;
  }
  return info;
}

int64_t Number(const std::string& text) {
  int64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

std::string TextOf(const redisReply& reply) {
  return reply.str == nullptr ? "" : std::string(reply.str, reply.len);
}

class Server {
 public:
  Server(std::string subject, RedisConnection& connection, Findings& findings)
      : subject_(std::move(subject)), connection_(connection), findings_(findings) {}

  // is_replica_fine: the node belongs to a cluster and may be a replica.
  void Look(bool is_replica_fine) {
    const auto answer = connection_.Call({"INFO"});
    if (!answer.ok()) {
      Bad("refuses INFO: " + answer.error(),
          "give ratelimit.redis_user the commands of docs/operations.md, The cluster");
      return;
    }
    info_ = ParseInfo(TextOf(**answer));
    if (Number(info_["redis_version"]) < kTestedVersion) {
      Warn("Redis " + info_["redis_version"] + ": tested with 7 and later", "upgrade it");
    }
    if (info_["role"] != "master" && !is_replica_fine) {
      Bad("it is a replica, which takes no writes",
          "name the master, or use redis-sentinel:// or redis-cluster://");
    }
    Eviction();
    Persistence();
    Clock();
    if (!wrong_) {
      findings_.push_back(Ok(subject_, "Redis " + info_["redis_version"] + ", " + info_["role"] +
                                           ", maxmemory-policy " + info_["maxmemory_policy"] +
                                           ", no persistence" + said_));
    }
  }

 private:
  void Bad(const std::string& finding, const std::string& advice) {
    wrong_ = true;
    findings_.push_back(Failure(subject_, finding, advice));
  }
  void Warn(const std::string& finding, const std::string& advice) {
    wrong_ = true;
    findings_.push_back(Warning(subject_, finding, advice));
  }

  // Every key has a time to live, and keys of running requests are renewed. Only volatile-ttl
  // evicts the keys that are about to expire anyway.
  void Eviction() {
    const std::string& policy = info_["maxmemory_policy"];
    const int64_t most = Number(info_["maxmemory"]);
    const int64_t used = Number(info_["used_memory"]);
    const char* advice =
        "maxmemory-policy volatile-ttl, and a maxmemory of about 1 kB for each "
        "key, workspace and model in use";
    if (policy.empty()) {
      findings_.push_back(Skipped(subject_, "INFO does not report its maxmemory-policy", advice));
    } else if (policy.starts_with("allkeys")) {
      Bad("maxmemory-policy is " + policy +
              ": it forgets limits and running requests that are in use, and admits requests above "
              "the limits",
          advice);
    } else if (policy != "volatile-ttl" && policy != "noeviction") {
      Warn("maxmemory-policy is " + policy + ": it forgets limits that are in use", advice);
    }
    if (most > 0 && used * 10 > most * 8) {
      Warn(Bytes(used) + " of " + Bytes(most) + " are used", "raise maxmemory");
    }
  }

  // No data in it is older than two minutes, so it does not need persistence.
  void Persistence() {
    const char* advice =
        "save \"\" and appendonly no: it only holds the state of the last two minutes, and writing "
        "it slows decisions";
    if (info_["aof_enabled"] == "1") Warn("appendonly is on", advice);
    // ratelimit's user may lack permission for CONFIG, which it does not need.
    const auto save = connection_.Call({"CONFIG", "GET", "save"});
    if (!save.ok() || (*save)->elements < 2) {
      said_ += " (snapshots: this user may not read the setting)";
    } else if (const std::string rule = TextOf(*(*save)->element[1]); !rule.empty()) {
      Warn("it writes snapshots (save " + rule + ")", advice);
    }
  }

  void Clock() {
    const int64_t asked_us = SystemClock::Get().WallUs();
    const auto time = connection_.Call({"TIME"});
    const int64_t answered_us = SystemClock::Get().WallUs();
    if (!time.ok() || (*time)->elements != 2) return;
    const int64_t theirs_us =
        Number(TextOf(*(*time)->element[0])) * 1'000'000 + Number(TextOf(*(*time)->element[1]));
    Finding finding = ClockFinding(subject_, ReadClock(theirs_us, asked_us, answered_us));
    if (finding.verdict == Verdict::kOk) {
      said_ += ", " + finding.finding;
    } else {
      wrong_ = true;
      findings_.push_back(std::move(finding));
    }
  }

  const std::string subject_;
  RedisConnection& connection_;
  Findings& findings_;
  std::map<std::string, std::string> info_;
  std::string said_;
  bool wrong_ = false;
};

struct Asked {
  std::string subject;
  RedisUrl url;
  RedisLogin login;
  int timeout_ms = 0;
};

constexpr char kReach[] =
    "start it, correct ratelimit.redis_url, or open the way to it; meanwhile each ratelimit "
    "process grants its share of the limits";

void LookAtServer(const Asked& asked, const Endpoint& endpoint, Findings& findings) {
  const std::string subject = asked.subject + " " + endpoint.ToString();
  const auto connection = RedisConnection::Open(endpoint, asked.login, asked.timeout_ms / 2);
  if (!connection.ok()) {
    findings.push_back(Failure(subject, connection.error(), kReach));
    return;
  }
  Server(subject, **connection, findings).Look(asked.url.kind == RedisUrl::Kind::kCluster);
}

// Sentinels are asked without a password.
void LookAtSentinels(const Asked& asked, Findings& findings) {
  std::set<std::string> masters;
  for (const Endpoint& sentinel : asked.url.endpoints) {
    const std::string subject = asked.subject + " sentinel " + sentinel.ToString();
    RedisLogin login = asked.login;
    login.password.clear();
    const auto connection = RedisConnection::Open(sentinel, login, asked.timeout_ms / 2);
    if (!connection.ok()) {
      findings.push_back(Failure(subject, connection.error(), "start it, or correct redis_url"));
      continue;
    }
    const auto named =
        (*connection)->Call({"SENTINEL", "GET-MASTER-ADDR-BY-NAME", asked.url.master_name});
    if (!named.ok() || (*named)->elements != 2) {
      findings.push_back(Failure(subject, "knows no master \"" + asked.url.master_name + "\"",
                                 "correct the name in redis_url, or sentinel monitor"));
      continue;
    }
    const Endpoint master{TextOf(*(*named)->element[0]), TextOf(*(*named)->element[1])};
    if (masters.insert(master.ToString()).second) LookAtServer(asked, master, findings);
  }
  if (masters.size() > 1) {
    findings.push_back(
        Failure(asked.subject, "the sentinels name different masters",
                "they are cut off from each other: repair the network between them"));
  }
}

Findings LookAt(const Asked& asked) {
  Findings findings;
  if (asked.url.kind == RedisUrl::Kind::kSentinel) {
    LookAtSentinels(asked, findings);
  } else {
    for (const Endpoint& endpoint : asked.url.endpoints) LookAtServer(asked, endpoint, findings);
  }
  return findings;
}

}  // namespace

void AddRedisChecks(const Inventory& inventory, const DoctorOptions& options, Checks& checks) {
  for (const ServiceConfig& service : inventory.services) {
    const auto& settings = service.config.ratelimit();
    if (settings.redis_url().empty()) {
      if (service.service != "ratelimit") continue;
      const bool alone = settings.replicas() <= 1;
      checks.push_back(
          {"redis", service.path, [path = service.path, alone] {
             return Findings{
                 alone ? Skipped(path,
                                 "no ratelimit.redis_url: exactly one ratelimit "
                                 "process may run")
                       : Failure(path, "several replicas, but no ratelimit.redis_url",
                                 "set it: otherwise each process admits every limit in full")};
           }});
      continue;
    }
    const std::string subject = service.path + " ratelimit.redis_url";
    const auto url = redis::ParseRedisUrl(settings.redis_url());
    Asked asked{.subject = subject, .url = {}, .login = {}, .timeout_ms = options.timeout_ms};
    std::string error;
    if (url.ok()) {
      asked.url = *url;
    } else {
      error = url.error();
    }
    asked.login.user = settings.redis_user();
    asked.login.authority_file = settings.redis_authority_file();
    asked.login.tls = asked.url.tls;
    if (!settings.redis_password_file().empty()) {
      const auto password = config::ReadWholeFile(settings.redis_password_file());
      if (password.ok()) {
        asked.login.password = *password;
        while (asked.login.password.ends_with('\n')) asked.login.password.pop_back();
      } else if (error.empty()) {
        error = "redis_password_file " + password.error();
      }
    }
    checks.push_back({"redis", subject, [asked = std::move(asked), error] {
                        if (error.empty()) return LookAt(asked);
                        return Findings{Failure(asked.subject, error, "correct the line")};
                      }});
  }
}

}  // namespace tollgate::cli
