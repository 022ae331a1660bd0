// Fills the fields of a message from YAML nodes, by reflection. Internal to common/config.
#pragma once

#include <yaml-cpp/mark.h>

#include <string>

#include "common/base/result.h"

namespace YAML {
class Node;
}
namespace google::protobuf {
class Message;
}

namespace tollgate::config {

struct Source {
  std::string name;      // the file name in errors
  std::string base_dir;  // base of relative ${file:…} paths
};

// Returns "name:line:column: message", with lines and columns counted from 1.
std::string At(const std::string& name, const YAML::Mark& mark, const std::string& message);

// Errors never contain a value: any value may be a misplaced secret.
BasicResult<void, std::string> ReadMessage(const YAML::Node& node, const Source& source,
                                           google::protobuf::Message& into);

}  // namespace tollgate::config
