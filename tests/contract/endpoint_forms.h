// How to make the same request on each inference endpoint, so that a rule common to all of them is
// written once.
#pragma once

#include <string>
#include <vector>

namespace tollgate::test {

enum class Family { kOpenAi, kMessages };

struct Ask {
  std::string model;   // "": the form's default
  std::string script;  // x_sim, as JSON
  bool stream = false;
  std::string limit;  // of output tokens, as JSON
  std::string more;   // further members: ,"x":1
  int64_t words = 2;  // of the prompt
};

struct EndpointForm {
  std::string name;
  std::string path;
  Family family = Family::kOpenAi;
  std::string model;              // served by this endpoint
  std::string unreachable_model;  // served by this endpoint; its engine is down
  std::string limit;              // name of the member that limits the output; "": none
  std::string input;              // name of the member that holds the prompt
  // Scripts reach the engine as a member of the body; otherwise as the text of the message.
  bool forwards = false;
  bool streams = true;
  // Runs an engine and is charged. Counting tokens does neither.
  bool generates = true;
  // How to send an image; "": not possible.
  std::string image;

  std::string Body(const Ask& ask) const;
};

const std::vector<EndpointForm>& EndpointForms();

}  // namespace tollgate::test
