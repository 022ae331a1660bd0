#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>
#include <set>

#include "common/config/substitute.h"
#include "common/host/plain_text.h"
#include "services/cli/doctor/probe.h"

namespace tollgate::cli {
namespace {

namespace fs = std::filesystem;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

// Calls visit(path, field, value) for each string that is set, for example "billing.sql.url".
template <typename Visit>
void ForEachString(const Message& message, const std::string& prefix, const Visit& visit) {
  const auto* reflection = message.GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection->ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    const std::string path = prefix.empty() ? field->name() : prefix + "." + field->name();
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      const int count = field->is_repeated() ? reflection->FieldSize(message, field) : 1;
      for (int i = 0; i < count; ++i) {
        ForEachString(field->is_repeated() ? reflection->GetRepeatedMessage(message, field, i)
                                           : reflection->GetMessage(message, field),
                      path, visit);
      }
    } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_STRING && !field->is_repeated()) {
      visit(path, *field, reflection->GetString(message, field));
    }
  }
}

std::string FolderOf(const std::string& path) {
  const std::string folder = fs::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

bool IsWritten(const std::string& name) {
  static const std::set<std::string> written = {"catalog_cache_file", "checkpoint_file",
                                                "audit_checkpoint_file", "address_file",
                                                "state_file"};
  return written.contains(name);
}

bool IsSecret(const std::string& name) {
  return name.find("key") != std::string::npos || name.find("password") != std::string::npos ||
         name.find("secret") != std::string::npos;
}

class FilesOf {
 public:
  FilesOf(const ServiceConfig& service, Findings& findings)
      : service_(service), findings_(findings) {}

  void Look() {
    ForEachString(service_.config, "",
                  [this](const std::string& path, const FieldDescriptor& field,
                         const std::string& value) { LookAt(path, field, value); });
    LookAtSubstitutions();
    if (wrong_ == 0 && files_ > 0) {
      findings_.push_back(Ok(service_.path, "files and folders that it names exist (" +
                                                std::to_string(files_) +
                                                "), secrets are closed to other users"));
    }
  }

 private:
  void Note(const std::string& field, const std::string& finding, const std::string& advice,
            Verdict verdict = Verdict::kFailure) {
    ++wrong_;
    findings_.push_back({verdict, service_.path + " " + field, finding, advice});
  }

  void LookAt(const std::string& path, const FieldDescriptor& field, const std::string& value) {
    const std::string& name = field.name();
    if (path.find("tls.") != std::string::npos) return;  // covered by the certificate checks
    if (name == "data_dir" || name == "archive_folder" || name == "web_folder") {
      if (value.empty()) return;
      ++files_;
      if (!fs::is_directory(value)) {
        Note(path, "the folder " + value + " is not there",
             "make it, owned by the user of the process, or run the doctor where the process runs",
             name == "data_dir" ? Verdict::kWarning : Verdict::kFailure);
      } else if (name != "web_folder" && ::access(value.c_str(), W_OK) != 0) {
        Note(path, "the folder " + value + " cannot be written: " + std::strerror(errno),
             "give it to the user of the process");
      }
      return;
    }
    if (!name.ends_with("_file") || value.empty()) return;
    ++files_;
    if (IsWritten(name)) {
      if (::access(FolderOf(value).c_str(), W_OK) != 0) {
        Note(path, "cannot be written in " + FolderOf(value) + ": " + std::strerror(errno),
             "make the folder, owned by the user of the process");
      }
      return;
    }
    if (::access(value.c_str(), R_OK) != 0) {
      Note(path, value + " cannot be read: " + std::strerror(errno),
           "make the file, or run the doctor as the user of the process, where it runs");
    } else if (IsSecret(name)) {
      LookAtMode(path, value);
    }
  }

  void LookAtMode(const std::string& field, const std::string& file) {
    if (!OthersReach(file)) return;
    Note(field, "every user of this machine can read " + file, "chmod 600 " + file,
         Verdict::kWarning);
  }

  // Checks the files of ${file:…} in the text. They exist: the reader has read them.
  void LookAtSubstitutions() {
    const auto text = config::ReadWholeFile(service_.path);
    if (!text) return;
    constexpr std::string_view kFile = "${file:";
    for (size_t at = text->find(kFile); at != std::string::npos; at = text->find(kFile, at + 1)) {
      const size_t end = text->find('}', at);
      if (end == std::string::npos) return;
      const fs::path named = text->substr(at + kFile.size(), end - at - kFile.size());
      ++files_;
      LookAtMode("${file:…}",
                 (named.is_absolute() ? named : FolderOf(service_.path) / named).string());
    }
  }

  const ServiceConfig& service_;
  Findings& findings_;
  int files_ = 0;
  int wrong_ = 0;
};

void LookAtAddresses(const ServiceConfig& service, Findings& findings) {
  const auto& config = service.config;
  const auto& host = config.host();
  const auto note = [&](const Result<void>& checked) {
    if (checked.ok()) return;
    findings.push_back(Failure(
        service.path, checked.error().internal,
        "the process does not start with this setting: see certificates in docs/operations.md"));
  };
  note(host::CheckPlainText(host, config.targets()));
  const bool plain = host.insecure_plaintext();
  const std::string ops = host.ops_listen().empty() ? host.admin_listen() : host.ops_listen();
  note(host::CheckPlainHttp("host.ops_listen", ops, false, plain || host.ops_insecure_plaintext(),
                            "host.ops_insecure_plaintext on a network of your own"));
  note(host::CheckPlainHttp("gateway.listen", config.gateway().listen(),
                            !config.gateway().edge_tls().certificate_file().empty(),
                            plain || config.gateway().insecure_plaintext(),
                            "gateway.edge_tls or gateway.insecure_plaintext"));
  note(host::CheckPlainHttp("dashboard.listen", config.dashboard().listen(),
                            !config.dashboard().edge_tls().certificate_file().empty(),
                            plain || config.dashboard().insecure_plaintext(),
                            "dashboard.edge_tls or dashboard.insecure_plaintext"));
  const auto& payments = config.billing().payments();
  note(host::CheckPlainHttp("billing.payments.webhook_listen", payments.webhook_listen(), false,
                            plain || payments.webhook_insecure_plaintext(),
                            "billing.payments.webhook_insecure_plaintext"));
  if (host.core_dumps()) {
    findings.push_back(Warning(service.path + " host.core_dumps",
                               "a crash may write prompts, keys and secrets into a core file",
                               "remove it when the fault is found"));
  }
}

void LookAtSecrets(const ServiceConfig& service, Findings& findings) {
  const auto too_short = [&](const char* field, const std::string& value, size_t least) {
    if (value.size() >= least) return;
    findings.push_back(Failure(service.path + " " + field,
                               "has " + std::to_string(value.size()) + " characters; at least " +
                                   std::to_string(least) + " are needed",
                               "openssl rand -hex 32 makes one; keep it in a file, ${file:…}"));
  };
  const auto& config = service.config;
  if (config.has_auth()) too_short("auth.pepper", config.auth().pepper(), 32);
  if (!config.dashboard().login_token().empty()) {
    too_short("dashboard.login_token", config.dashboard().login_token(), 16);
  }
  if (!config.router().cache_salt_key().empty()) {
    too_short("router.cache_salt_key", config.router().cache_salt_key(), 32);
  }
}

// Checks that names in the catalog refer to each other. The catalog service has the full rules; its
// view of the file is among the engine checks.
Findings LookAtCatalog(const CatalogConfig& catalog) {
  Findings findings;
  std::set<std::string> pools, engines, models;
  for (const auto& pool : catalog.file.pools()) {
    if (!pools.insert(pool.name()).second) {
      findings.push_back(Failure(catalog.path, "the pool " + pool.name() + " is listed twice",
                                 "give each pool a name of its own"));
    }
    for (const auto& engine : pool.engines()) {
      if (!engines.insert(engine.id()).second) {
        findings.push_back(Failure(catalog.path, "the engine " + engine.id() + " is listed twice",
                                   "give each engine an id of its own"));
      }
    }
  }
  for (const auto& model : catalog.file.models()) {
    models.insert(model.id());
    if (!pools.contains(model.pool())) {
      findings.push_back(Failure(catalog.path,
                                 "the model " + model.id() + " names the pool \"" + model.pool() +
                                     "\", which is not in the file",
                                 "add the pool, or use an existing one"));
    }
  }
  for (const auto& model : catalog.file.models()) {
    for (const std::string& other : model.fallbacks()) {
      if (models.contains(other)) continue;
      findings.push_back(Failure(
          catalog.path,
          "the model " + model.id() + " falls back to \"" + other + "\", which is not in the file",
          "add that model, or remove it from fallbacks"));
    }
  }
  if (findings.empty()) {
    findings.push_back(Ok(catalog.path, "pools, engines and fall-backs fit together"));
  }
  return findings;
}

}  // namespace

void AddConfigurationChecks(const Inventory& inventory, Checks& checks) {
  checks.push_back({"configuration", "files", [reading = inventory.reading] { return reading; }});
  for (const ServiceConfig& service : inventory.services) {
    checks.push_back({"configuration", service.path, [service] {
                        Findings findings;
                        LookAtAddresses(service, findings);
                        LookAtSecrets(service, findings);
                        FilesOf(service, findings).Look();
                        return findings;
                      }});
  }
  for (const CatalogConfig& catalog : inventory.catalogs) {
    checks.push_back({"configuration", catalog.path, [catalog] { return LookAtCatalog(catalog); }});
  }
}

}  // namespace tollgate::cli
