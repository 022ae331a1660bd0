// The command line as a process.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "tests/support/json.h"
#include "tests/support/process.h"

namespace tollgate::test {

struct Outcome {
  int code = -1;
  std::string out, error;
};

// environment: "NAME=value …"; may begin with other words of the shell.
inline Outcome RunTollgate(const std::string& arguments, const std::string& environment = "") {
  const TempDir folder;
  const std::string out = folder.path() + "/out", error = folder.path() + "/error";
  const std::string command =
      environment + " " + BinaryPath("tollgate") + " " + arguments + " >" + out + " 2>" + error;
  const int status = std::system(command.c_str());  // NOLINT: a shell is what users have
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, ReadFile(out), ReadFile(error)};
}

// A report of the doctor.
class Diagnosis {
 public:
  explicit Diagnosis(Outcome outcome)
      : outcome_(std::move(outcome)), json_(Json::Parse(outcome_.out).value_or(Json())) {
    EXPECT_TRUE(json_.is_object()) << outcome_.out << outcome_.error;
    // The exit code always follows from the counts.
    const int expected = Count("failures") > 0 ? 2 : Count("warnings") > 0 ? 1 : 0;
    EXPECT_EQ(outcome_.code, expected) << outcome_.out;
  }

  int64_t Count(const std::string& name) const { return json_[name].integer(); }
  const std::string& text() const { return outcome_.out; }

  // Returns whether a finding of this check and result has `subject` in its subject and `text` in
  // its text; a finding that is not a success must also say what to do.
  bool Has(const std::string& check, const std::string& result, const std::string& subject,
           const std::string& finding) const {
    for (size_t i = 0; i < json_["checks"].size(); ++i) {
      const Json& one = json_["checks"][i];
      if (one["check"].str() != check || one["result"].str() != result ||
          one["subject"].str().find(subject) == std::string::npos ||
          one["finding"].str().find(finding) == std::string::npos) {
        continue;
      }
      if (result == "warning" || result == "failure") EXPECT_NE(one["advice"].str(), "");
      return true;
    }
    return false;
  }
  // Warnings and failures of all other checks, one a line.
  std::string Wrong(const std::vector<std::string>& but_of = {}) const {
    std::string lines;
    for (size_t i = 0; i < json_["checks"].size(); ++i) {
      const Json& one = json_["checks"][i];
      const std::string check = one["check"].str(), result = one["result"].str();
      bool left_out = result == "ok" || result == "skipped";
      for (const std::string& other : but_of) left_out = left_out || other == check;
      if (!left_out) {
        lines +=
            result + " " + check + " " + one["subject"].str() + ": " + one["finding"].str() + "\n";
      }
    }
    return lines;
  }

 private:
  Outcome outcome_;
  Json json_;
};

}  // namespace tollgate::test
