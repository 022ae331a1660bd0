#include "common/config/config.h"

#include <google/protobuf/message.h>
#include <yaml-cpp/yaml.h>

#include <exception>
#include <memory>
#include <string_view>
#include <vector>

#include "common/base/try.h"
#include "common/config/reader.h"
#include "common/config/substitute.h"

namespace tollgate::config {
namespace {

std::string FolderOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

// yaml-cpp quotes part of the file behind a colon, for example the rest of a value that begins with
// "*", which may be a secret.
std::string WithoutText(const std::string& message) { return message.substr(0, message.find(':')); }

}  // namespace

BasicResult<void, std::string> LoadText(const std::string& text, const std::string& name,
                                        const std::string& base_dir,
                                        google::protobuf::Message& into) {
  // yaml-cpp throws on malformed YAML. The exceptions do not leave this function.
  try {
    const std::vector<YAML::Node> documents = YAML::LoadAll(text);
    if (documents.size() > 1) {
      return Fail{At(name, documents[1].Mark(),
                     "a second YAML document: a configuration file must contain only one")};
    }
    std::unique_ptr<google::protobuf::Message> parsed(into.New());
    if (!documents.empty()) {
      TRY(ReadMessage(documents[0], {name, base_dir}, *parsed));
    }
    into.CopyFrom(*parsed);
    return {};
  } catch (const YAML::Exception& error) {
    return Fail{At(name, error.mark, WithoutText(error.msg))};
  } catch (const std::exception& error) {
    return Fail{name + ": " + error.what()};
  }
}

BasicResult<void, std::string> LoadFile(const std::string& path, google::protobuf::Message& into) {
  auto text = ReadWholeFile(path);
  if (!text) return Fail{path + ": " + text.error()};
  return LoadText(*text, path, FolderOf(path), into);
}

}  // namespace tollgate::config
