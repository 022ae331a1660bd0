// Copies the audit entries of other services into auth's log, once a second, from a thread of its
// own. Every replica does it; each entry is copied once (storage/audit_copy.h).
#pragma once

#include <map>
#include <string>
#include <vector>

#include "common/runtime/periodic_thread.h"
#include "services/auth/storage/audit_copy.h"
#include "services/auth/storage/auth_store.h"

namespace tollgate::auth {

class AuditCopier {
 public:
  AuditCopier(AuthStore& store, std::vector<AuditSource> sources)
      : store_(store), sources_(std::move(sources)) {}
  ~AuditCopier() { Stop(); }

  void Start();
  // Waits for a page that is being copied.
  void Stop() { thread_.Stop(); }

  // Copies what the sources have. For the thread and for tests.
  void Step();
  const std::vector<AuditSource>& sources() const { return sources_; }

 private:
  struct State {
    int64_t complete_us = 0;  // monotonic: when the copy last had everything
    std::string problem;      // the last one that was logged
  };
  void Copy(const AuditSource& source, State& state);
  // Logs a problem once.
  void Report(const AuditSource& source, State& state, const std::string& problem, bool broken);

  AuthStore& store_;
  const std::vector<AuditSource> sources_;
  std::map<std::string, State> states_;
  PeriodicThread thread_;
};

}  // namespace tollgate::auth
