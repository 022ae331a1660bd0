// Every method of every service of the product's protos.
#pragma once

#include <string>
#include <vector>

namespace tollgate::test {

struct Method {
  std::string name;  // "package.Service/Method"
  bool is_admin = false;
};

// Reads proto/ of the source tree (TOLLGATE_SOURCE).
std::vector<Method> AllMethods();

}  // namespace tollgate::test
