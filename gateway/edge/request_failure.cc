#include "gateway/edge/request_failure.h"

#include "gateway/edge/request_trace.h"

namespace tollgate::gateway {

void NoteFailure(HttpRequest& request, const Error& error) {
  RequestFailure& failure = NotesOf(request).failure;
  failure.error = &error.row();
  failure.reason = error.reason;
}

void NoteCaller(HttpRequest& request, std::string_view key_id, std::string_view workspace_id) {
  RequestFailure& failure = NotesOf(request).failure;
  failure.key_id = key_id;
  failure.workspace_id = workspace_id;
}

const RequestFailure& FailureOf(const HttpRequest& request) {
  static const RequestFailure none;
  const auto* notes = static_cast<const RequestNotes*>(request.attachment.get());
  return notes != nullptr && notes->failure.error != nullptr ? notes->failure : none;
}

}  // namespace tollgate::gateway
