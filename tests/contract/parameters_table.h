// Every numeric parameter of every endpoint, with its range. See docs/contract.md, general
// rule 3; docs/design/wire.md 2.1, 3, 4, 5.1, 6.1; decisions 17, 18.
#pragma once

#include <string>
#include <vector>

namespace tollgate::test {

struct NumericParameter {
  std::string endpoint;  // name of its EndpointForm
  std::string name;
  bool integer = true;
  // The ends of the range, as JSON; empty: no limit.
  std::string low = {};
  std::string high = {};
  // Values just outside the range.
  std::string below = {};
  std::string above = {};
  // Other members that it requires: ,"logprobs":true
  std::string with = {};
  // True: null is refused instead of being treated as absent.
  bool required = false;
  // How it is written, with $V as the value; empty: as a top-level member.
  std::string member = {};

  std::string Write(const std::string& value) const;
};

const std::vector<NumericParameter>& NumericParameters();

// A value as JSON text, in range and of the right type, or not.
struct Spelling {
  std::string text;
  bool good = false;
};
// Values for a parameter: its ends, values outside, other spellings of valid numbers, other types,
// numbers beyond every machine type.
std::vector<Spelling> SpellingsOf(const NumericParameter& parameter);

// Bodies, or text after the members of a valid one, that are not acceptable JSON.
struct BadBody {
  std::string name;
  std::string body;  // the whole body; $B stands for the members of a valid one
};
const std::vector<BadBody>& BadBodies();

}  // namespace tollgate::test
