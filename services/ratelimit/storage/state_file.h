// Keeps the rates of a memory store across a restart, so that the restarted process does not grant
// each subject a second burst.
#pragma once

#include <string>

#include "common/base/clock.h"
#include "common/runtime/periodic_thread.h"
#include "services/ratelimit/storage/memory_store.h"

namespace tollgate::ratelimit {

class StateFile {
 public:
  // store must outlive this object.
  StateFile(std::string path, MemoryStore& store, const Clock& clock);
  ~StateFile();  // stops

  // Restores the rates from the file. Returns false if there is no file, as at the first start, and
  // an error if it cannot be read.
  BasicResult<bool, std::string> Load();
  // Starts the thread that writes the file every second.
  void Start();
  // Writes the file a last time.
  void Stop();
  // Replaces the file atomically: a crash leaves the old one or the new one.
  BasicResult<bool, std::string> Save();

 private:
  const std::string path_;
  MemoryStore& store_;
  const Clock& clock_;
  bool failed_ = false;  // whether the thread's last attempt failed
  PeriodicThread thread_;
};

}  // namespace tollgate::ratelimit
