// Collects what the verification of one workspace finds.
#pragma once

#include <string>

#include "services/billing/verify/verify.h"

namespace tollgate::billing {

class Findings {
 public:
  Findings(VerifyReport& report, std::string workspace)
      : report_(report), workspace_(std::move(workspace)) {}

  void Report(const std::string& what) {
    if (report_.violations.size() < kMaxViolations) {
      report_.violations.push_back("workspace " + workspace_ + ": " + what);
    }
  }
  void Expect(int64_t stored, int64_t computed, const std::string& what) {
    if (stored == computed) return;
    Report(what + " is " + std::to_string(stored) + ", by the entries " + std::to_string(computed));
  }
  VerifyReport& report() { return report_; }

 private:
  VerifyReport& report_;
  const std::string workspace_;
};

}  // namespace tollgate::billing
