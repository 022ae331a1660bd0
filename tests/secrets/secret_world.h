// A whole Tollgate, as one process or as a cluster, in which everything that must stay secret is a
// canary; what it wrote and answered is collected and searched.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "common/tracing/testing/fake_collector.h"
#include "tests/secrets/canaries.h"
#include "tests/secrets/echo_server.h"
#include "tests/secrets/mail_box.h"
#include "tests/support/cluster.h"
#include "tests/support/engine_sim.h"
#include "tests/support/postgres.h"

namespace tollgate::test {

class SecretWorld {
 public:
  // A cluster has its databases on this server; null: SQLite.
  SecretWorld(bool all_in_one, testing::TestPostgres* postgres);

  Cluster& cluster() { return *cluster_; }
  EngineSim& engine() { return engine_; }
  EchoServer& echo() { return echo_; }
  // What was sent to it so far.
  std::string traces() { return collector_.bytes(); }
  MailBox& mails() { return mails_; }
  Canaries& canaries() { return canaries_; }
  bool all_in_one() const { return all_in_one_; }
  // What the engine wants as Authorization.
  const std::string& engine_key() const { return engine_key_; }

  // A text that is nowhere else; it is searched from now on.
  std::string NewCanary(const std::string& kind);

  // The caller's own output is in the answers that this takes without a word: statuses below 300.
  // Any other answer is searched at the end.
  HttpResponse Collect(HttpResponse answer);
  // An answer that must hold no secret whatever its status is.
  HttpResponse CollectAll(HttpResponse answer);
  // Of all processes, in between: a process that is restarted forgets its metrics.
  void CollectMetrics();

  // What was found in answers, metrics, traces, logs and whatever the processes wrote into files
  // and databases. After the processes have stopped.
  std::vector<std::string> Search();

 private:
  void Keep(const HttpResponse& answer);
  std::string SecretFile(const std::string& kind, const std::string& text);
  ClusterOptions Options();

  const bool all_in_one_;
  testing::TestPostgres* const postgres_;
  const std::string engine_key_;
  EngineSim engine_;
  EchoServer echo_{402};
  MailBox mails_;
  // Every request is traced.
  tracing::FakeCollector collector_;
  Canaries canaries_;
  // Secrets that the operator gives are in files of their own.
  TempDir given_;
  int made_ = 0;
  std::unique_ptr<Cluster> cluster_;
  std::string answers_, metrics_;
};

}  // namespace tollgate::test
