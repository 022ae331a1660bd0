// Reads a YAML configuration file strictly into a proto message. Unknown fields, wrong types and
// duplicate keys are errors with file, line and column. Strings may contain ${env:NAME},
// ${env:NAME:-default} and ${file:PATH} (substitute.h).
#pragma once

#include <string>

#include "common/base/result.h"

namespace google::protobuf {
class Message;
}

namespace tollgate::config {

// The error is one line: "tollgate.yaml:12:5: unknown field \"listn\" in GatewaySettings
// (did you mean \"listen\"?)".
BasicResult<void, std::string> LoadFile(const std::string& path, google::protobuf::Message& into);
// As LoadFile, from text. name: the file name in errors. base_dir: base of relative ${file:…}
// paths.
BasicResult<void, std::string> LoadText(const std::string& text, const std::string& name,
                                        const std::string& base_dir,
                                        google::protobuf::Message& into);

}  // namespace tollgate::config
