// Helpers for tests of the checkers: a legal stream, and the violation that must be found when one
// of its events is changed, left out or duplicated.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "tests/support/protocol/assembled.h"

namespace tollgate::test {

using Events = std::vector<std::string>;

inline std::string Data(const std::string& json) { return "data: " + json + "\n\n"; }
// An event whose name is its type.
inline std::string Named(const std::string& json) {
  return "event: " + Json::Parse(json).value_or(Json())["type"].str() + "\n" + Data(json);
}

struct Broken {
  std::string rule;  // part of the violation that must be found
  std::function<void(Events&)> how;
};
inline void PrintTo(const Broken& broken, std::ostream* out) { *out << broken.rule; }

inline std::string Join(const Events& events) {
  std::string bytes;
  for (const std::string& event : events) bytes += event;
  return bytes;
}

// In event `at`, replaces the first `from` by `to`.
inline auto Change(size_t at, std::string from, std::string to) {
  return [=](Events& events) {
    const size_t found = events.at(at).find(from);
    ASSERT_NE(found, std::string::npos) << events[at];
    events[at].replace(found, from.size(), to);
  };
}
inline auto Drop(size_t at) {
  return [=](Events& events) { events.erase(events.begin() + static_cast<long>(at)); };
}
inline auto Insert(size_t at, std::string event) {
  return [=](Events& events) { events.insert(events.begin() + static_cast<long>(at), event); };
}
inline auto Swap(size_t a, size_t b) {
  return [=](Events& events) { std::swap(events.at(a), events.at(b)); };
}

using Check = std::function<Checked(const std::string&)>;

inline std::string Violations(const Checked& checked) {
  std::string text;
  for (const std::string& violation : checked.violations) text += violation + "\n";
  return text;
}

// The legal stream has no violation; each broken one has the violation in its row.
inline void ExpectFound(const Events& legal, const std::vector<Broken>& table, const Check& check) {
  EXPECT_EQ(Violations(check(Join(legal))), "");
  for (const Broken& broken : table) {
    Events events = legal;
    broken.how(events);
    const std::string found = Violations(check(Join(events)));
    EXPECT_NE(found.find(broken.rule), std::string::npos)
        << "not found: " << broken.rule << "\nfound:\n"
        << found << "in:\n"
        << Join(events);
  }
}

}  // namespace tollgate::test
