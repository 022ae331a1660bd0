// Collects what the verification of one workspace, or of billing's audit log, finds.
#pragma once

#include <string>

#include "services/billing/verify/verify.h"

namespace tollgate::billing {

class Findings {
 public:
  Findings(VerifyReport& report, const std::string& workspace)
      : report_(report), of_("workspace " + workspace + ": ") {}
  static Findings OfAuditLog(VerifyReport& report) {
    Findings findings(report, "");
    findings.of_ = "billing's audit log: ";
    return findings;
  }

  void Report(const std::string& what) {
    if (report_.violations.size() < kMaxViolations) {
      report_.violations.push_back(of_ + what);
    }
  }
  void Expect(int64_t stored, int64_t computed, const std::string& what) {
    if (stored == computed) return;
    Report(what + " is " + std::to_string(stored) + ", by the entries " + std::to_string(computed));
  }
  VerifyReport& report() { return report_; }

 private:
  VerifyReport& report_;
  std::string of_;
};

}  // namespace tollgate::billing
