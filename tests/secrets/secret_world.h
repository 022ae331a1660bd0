// A whole Tollgate, as one process or as a cluster, in which every secret is a canary; its files
// and responses are collected and searched.
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
  // Everything that was sent to the collector so far.
  std::string traces() { return collector_.bytes(); }
  MailBox& mails() { return mails_; }
  Canaries& canaries() { return canaries_; }
  bool all_in_one() const { return all_in_one_; }
  // The Authorization that the engine requires.
  const std::string& engine_key() const { return engine_key_; }

  // A text that is used nowhere else; the search includes it from now on.
  std::string NewCanary(const std::string& kind);

  // Adds a response for the search at the end, unless its status is below 300: it may contain the
  // caller's own output.
  HttpResponse Collect(HttpResponse answer);
  // Adds a response that must not contain a secret, whatever its status is.
  HttpResponse CollectAll(HttpResponse answer);
  // Collects the metrics of all processes before one is restarted and forgets them.
  void CollectMetrics();

  // Searches responses, metrics, traces, logs and all files and databases of the processes. Call
  // after the processes have stopped.
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
  // Secrets from the operator are in files of their own.
  TempDir given_;
  int made_ = 0;
  std::unique_ptr<Cluster> cluster_;
  std::string answers_, metrics_;
};

}  // namespace tollgate::test
