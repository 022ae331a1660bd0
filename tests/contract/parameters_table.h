// Every numeric parameter of every endpoint, with what it may be. See docs/contract.md, general
// rule 3; docs/design/wire.md 2.1, 3, 4, 5.1, 6.1; decisions 17, 18.
#pragma once

#include <string>
#include <vector>

namespace tollgate::test {

struct NumericParameter {
  std::string endpoint;  // name of its EndpointForm
  std::string name;
  bool integer = true;
  // The ends of the range, as JSON; empty: there is none.
  std::string low = {};
  std::string high = {};
  // Values just outside of it.
  std::string below = {};
  std::string above = {};
  // Other members that it needs: ,"logprobs":true
  std::string with = {};
  // Null is not the same as absent.
  bool required = false;
  // How it is written, with $V as the value; empty: a member of its own.
  std::string member = {};

  std::string Write(const std::string& value) const;
};

const std::vector<NumericParameter>& NumericParameters();

// A value as JSON text, in range and of the right type, or not.
struct Spelling {
  std::string text;
  bool good = false;
};
// What every parameter must make of: its ends, values outside, other spellings of good numbers,
// other types, numbers beyond every machine type.
std::vector<Spelling> SpellingsOf(const NumericParameter& parameter);

// Whole bodies, or what stands behind the members of a good one, that are no JSON of ours.
struct BadBody {
  std::string name;
  std::string body;  // the whole body; with $B in it, the good one's members stand there
};
const std::vector<BadBody>& BadBodies();

}  // namespace tollgate::test
