#include "services/dashboard/openapi/describe.h"

#include <google/api/annotations.pb.h>
#include <google/api/field_behavior.pb.h>

#include <algorithm>
#include <cctype>
#include <set>
#include <string>

#include "services/dashboard/openapi/schema.h"

namespace tollgate::openapi {
namespace {

namespace pb = google::protobuf;

// Converts "auditEntries" to "auditEntry".
std::string Singular(std::string plural) {
  if (plural.ends_with("ies")) return plural.substr(0, plural.size() - 3) + "y";
  if (plural.ends_with("s") && !plural.ends_with("ss")) plural.pop_back();
  return plural;
}

// Converts "CreateCreditGrant" to "Create credit grant".
std::string Words(const std::string& name) {
  std::string words;
  for (const char c : name) {
    const bool capital = std::isupper(static_cast<unsigned char>(c)) != 0;
    if (capital && !words.empty()) words += ' ';
    words += capital && !words.empty()
                 ? static_cast<char>(std::tolower(static_cast<unsigned char>(c)))
                 : c;
  }
  return words;
}

struct Path {
  std::string text;                     // "/admin/v1/workspaces/{workspace}:close"
  std::vector<std::string> parameters;  // in order
  std::set<std::string> variables;      // top-level request fields that it sets
  bool deep = false;                    // the last parameter may contain slashes
};

// Each wildcard becomes a parameter that is named after the collection before it.
Path MakePath(const std::string& text) {
  Path path;
  std::string literal;  // the segment before the parameter
  size_t i = 0;
  const auto flush_segment = [&](const std::string& segment) {
    if (segment == "*" || segment == "**") {
      const std::string name = literal.empty() ? "id" : Singular(literal);
      path.text += "{" + name + "}";
      path.parameters.push_back(name);
      path.deep = segment == "**";
    } else {
      path.text += segment;
      literal = segment;
    }
  };
  std::string segment;
  while (i < text.size()) {
    const char c = text[i];
    if (c == '{') {
      const size_t end = text.find('}', i);
      std::string variable = text.substr(i + 1, end - i - 1);
      const size_t equals = variable.find('=');
      const std::string field = variable.substr(0, equals);
      path.variables.insert(field.substr(0, field.find('.')));
      if (equals == std::string::npos) {
        path.text += "{" + field + "}";
        path.parameters.push_back(field);
      } else {
        std::string part;
        for (const char v : variable.substr(equals + 1) + "/") {
          if (v != '/') {
            part += v;
            continue;
          }
          if (!path.text.ends_with("/")) path.text += "/";
          flush_segment(part);
          part.clear();
        }
      }
      i = end + 1;
      continue;
    }
    if (c == '/' || c == ':') {
      if (!segment.empty()) flush_segment(segment);
      segment.clear();
      if (c == ':') {  // the verb
        path.text += text.substr(i);
        return path;
      }
      path.text += c;
    } else {
      segment += c;
    }
    ++i;
  }
  if (!segment.empty()) flush_segment(segment);
  return path;
}

class Document {
 public:
  explicit Document(const std::vector<const pb::FileDescriptor*>& files) : files_(files) {}

  Node Make() {
    Node root = Node::Map();
    root.Set("openapi", "3.1.0");
    root.At("info")
        .Set("title", "Tollgate admin API")
        .Set("version", "1")
        .Set(
            "description",
            "Generated from proto/tollgate/admin/v1 by tollgate-admin-openapi; do not edit. Served "
            "by the dashboard under its own address, never by the public API. Amounts and 64-bit "
            "integers are strings. Unknown fields are ignored; answers have every field.");
    root.At("info").At("license").Set("name", "Apache 2.0").Set("identifier", "Apache-2.0");
    Node server = Node::Map();
    server.Set("url", "{base_url}");
    server.At("variables").At("base_url").Set("default", "http://127.0.0.1:8081");
    root.Set("servers", Node::List().Add(std::move(server)));
    FindPatched();
    Node tags = Node::List();
    for (const pb::FileDescriptor* file : files_) {
      for (int i = 0; i < file->service_count(); ++i) {
        const pb::ServiceDescriptor* service = file->service(i);
        Node tag = Node::Map();
        tag.Set("name", service->name());
        const std::string comment = CommentOf(service);
        if (!comment.empty()) tag.Set("description", comment);
        tags.Add(std::move(tag));
        for (int j = 0; j < service->method_count(); ++j) AddMethod(service->method(j));
      }
    }
    root.Set("tags", std::move(tags));
    Node bearer = Node::Map(), cookie = Node::Map();
    bearer.Set("bearer", Node::List());
    cookie.Set("session", Node::List());
    root.Set("security", Node::List().Add(std::move(bearer)).Add(std::move(cookie)));
    root.Set("paths", std::move(paths_));
    Node& components = root.At("components");
    components.Set("schemas", schemas_.Take());
    Node& error = components.At("responses").At("Error");
    error.Set("description",
              "A google.rpc.Status. Programs read `reason` of the ErrorInfo in details; messages "
              "are for people.");
    error.At("content")
        .At("application/json")
        .At("schema")
        .Set("$ref", "#/components/schemas/Status");
    components.At("securitySchemes")
        .At("bearer")
        .Set("type", "http")
        .Set("scheme", "bearer")
        .Set("description", "A personal access token, or the configured login token.");
    components.At("securitySchemes")
        .At("session")
        .Set("type", "apiKey")
        .Set("in", "cookie")
        .Set("name", "__Host-tollgate-session")
        .Set("description",
             "A person's session. Requests that write also need the header x-csrf-token and come "
             "from the dashboard's own origin.");
    return root;
  }

 private:
  // Finds the resources that a PATCH accepts in part: none of their fields is required.
  void FindPatched() {
    for (const pb::FileDescriptor* file : files_) {
      for (int i = 0; i < file->service_count(); ++i) {
        for (int j = 0; j < file->service(i)->method_count(); ++j) {
          const auto* method = file->service(i)->method(j);
          const auto& rule = method->options().GetExtension(google::api::http);
          if (rule.patch().empty()) continue;
          const auto* field = method->input_type()->FindFieldByName(rule.body());
          if (field != nullptr) schemas_.SetPartial(field->message_type());
        }
      }
    }
  }

  void AddMethod(const pb::MethodDescriptor* method) {
    if (!method->options().HasExtension(google::api::http)) return;
    const auto& rule = method->options().GetExtension(google::api::http);
    AddRule(method, rule, 0);
    int index = 0;
    for (const auto& more : rule.additional_bindings()) AddRule(method, more, ++index);
  }

  void AddRule(const pb::MethodDescriptor* method, const google::api::HttpRule& rule, int index) {
    const char* verb = rule.pattern_case() == google::api::HttpRule::kGet      ? "get"
                       : rule.pattern_case() == google::api::HttpRule::kPut    ? "put"
                       : rule.pattern_case() == google::api::HttpRule::kPost   ? "post"
                       : rule.pattern_case() == google::api::HttpRule::kDelete ? "delete"
                                                                               : "patch";
    const Path path =
        MakePath(rule.get() + rule.put() + rule.post() + rule.delete_() + rule.patch());
    Node operation = Node::Map();
    operation.Set("operationId", method->service()->name() + "_" + method->name() +
                                     (index == 0 ? "" : "_" + std::to_string(index + 1)));
    operation.Set("tags", Node::List().Add(Node::Text(method->service()->name())));
    operation.Set("summary", Words(method->name()));
    const std::string comment = CommentOf(method);
    if (!comment.empty()) operation.Set("description", comment);
    Node parameters = Node::List();
    for (const std::string& name : path.parameters) {
      Node parameter = Node::Map();
      parameter.Set("name", name).Set("in", "path").Set("required", Node::Raw("true"));
      if (path.deep && name == path.parameters.back())
        parameter.Set("description", "May contain slashes, which are sent as they are.");
      parameter.At("schema").Set("type", "string");
      parameters.Add(std::move(parameter));
    }
    if (rule.body() != "*") AddQuery(method->input_type(), rule.body(), path, parameters);
    if (!parameters.empty()) operation.Set("parameters", std::move(parameters));
    if (!rule.body().empty()) AddBody(method->input_type(), rule.body(), path, operation);
    AddResponses(method, rule, operation);
    paths_.At(path.text).Set(verb, std::move(operation));
  }

  void AddQuery(const pb::Descriptor* type, const std::string& body, const Path& path,
                Node& parameters) {
    for (int i = 0; i < type->field_count(); ++i) {
      const pb::FieldDescriptor* field = type->field(i);
      if (field->name() == body || path.variables.count(field->name()) > 0) continue;
      if (!Schemas::IsQueryValue(field)) continue;
      Node parameter = Node::Map();
      parameter.Set("name", field->json_name()).Set("in", "query");
      if (Schemas::Has(field, google::api::REQUIRED)) parameter.Set("required", Node::Raw("true"));
      const std::string comment = CommentOf(field);
      if (!comment.empty()) parameter.Set("description", comment);
      parameter.Set("schema", schemas_.OfField(field, false));
      parameters.Add(std::move(parameter));
    }
  }

  void AddBody(const pb::Descriptor* type, const std::string& body, const Path& path,
               Node& operation) {
    Node& request = operation.At("requestBody");
    Node& schema = request.Set("required", Node::Raw("true"))
                       .At("content")
                       .At("application/json")
                       .At("schema");
    schema = body == "*" ? schemas_.OfRest(type, path.variables)
                         : schemas_.OfField(type->FindFieldByName(body), false);
  }

  void AddResponses(const pb::MethodDescriptor* method, const google::api::HttpRule& rule,
                    Node& operation) {
    const pb::Descriptor* type = method->output_type();
    Node& responses = operation.At("responses");
    Node& ok = responses.At("200");
    if (type->full_name() == "google.api.HttpBody") {
      ok.Set("description", "The document itself.");
      ok.At("content").At("*/*").Set("schema", Node::Map());
    } else if (method->server_streaming()) {
      ok.Set("description", "One line for each message, and a last one if it failed.");
      Node line = Node::Map();
      line.Set("type", "object");
      line.At("properties").Set("result", schemas_.Of(type));
      line.At("properties").At("error").Set("$ref", "#/components/schemas/Status");
      ok.At("content").At("application/json").Set("schema", std::move(line));
    } else {
      ok.Set("description", "Done.");
      ok.At("content")
          .At("application/json")
          .Set("schema",
               rule.response_body().empty()
                   ? schemas_.Of(type)
                   : schemas_.OfField(type->FindFieldByName(rule.response_body()), false));
    }
    responses.At("default").Set("$ref", "#/components/responses/Error");
  }

  const std::vector<const pb::FileDescriptor*>& files_;
  Schemas schemas_;
  Node paths_ = Node::Map();
};

}  // namespace

Node Describe(const std::vector<const pb::FileDescriptor*>& files) {
  return Document(files).Make();
}

}  // namespace tollgate::openapi
