// How each inference endpoint is asked for the same things: what every one of them must do is told
// once, over all of them.
#pragma once

#include <string>
#include <vector>

namespace tollgate::test {

enum class Family { kOpenAi, kMessages };

struct Ask {
  std::string model;   // "" the form's own
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
  std::string model;  // that answers here
  std::string away;   // that would, if its engine were there
  std::string limit;  // name of the member that limits the output; "" has none
  std::string input;  // name of the member that holds the prompt
  // Scripts reach the engine as a member of the body; else as the text of the message.
  bool forwards = false;
  bool streams = true;
  // Runs an engine, and is paid for. Counting is neither.
  bool generates = true;
  // How an image is asked about; "" can not be.
  std::string image;

  std::string Body(const Ask& ask) const;
};

const std::vector<EndpointForm>& EndpointForms();

}  // namespace tollgate::test
