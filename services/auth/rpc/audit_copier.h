// Copies the audit entries of other services into auth's log once a second, on its own thread.
// Every replica runs one; each entry is copied once (storage/audit_copy.h).
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
  // Waits for the page that is being copied.
  void Stop() { thread_.Stop(); }

  // Copies everything that is available. Called by the thread and by tests.
  void Step();
  const std::vector<AuditSource>& sources() const { return sources_; }

 private:
  struct State {
    int64_t complete_us = 0;  // monotonic: when the copy was last complete
    std::string problem;      // the last problem that was logged
  };
  void Copy(const AuditSource& source, State& state);
  // Logs a problem when it is new.
  void Report(const AuditSource& source, State& state, const std::string& problem, bool broken);

  AuthStore& store_;
  const std::vector<AuditSource> sources_;
  std::map<std::string, State> states_;
  PeriodicThread thread_;
};

}  // namespace tollgate::auth
