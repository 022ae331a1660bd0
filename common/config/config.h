// Configuration: a YAML file read strictly into a proto message. Unknown fields, wrong types and
// duplicate keys are errors with file, line and column. Strings may hold ${env:NAME} and
// ${file:PATH} (the file's content without its last line break; relative to the configuration
// file).
#pragma once

#include <string>

#include "common/base/result.h"

namespace google::protobuf {
class Message;
}

namespace tollgate::config {

// The error is a line for people: "tollgate.yaml:12:5: unknown field \"listn\" in GatewaySettings
// (did you mean \"listen\"?)".
BasicResult<void, std::string> LoadFile(const std::string& path, google::protobuf::Message& into);
// The same from text; name stands for the file in errors and base_dir is where ${file:…} starts.
BasicResult<void, std::string> LoadText(const std::string& text, const std::string& name,
                                        const std::string& base_dir,
                                        google::protobuf::Message& into);

}  // namespace tollgate::config
