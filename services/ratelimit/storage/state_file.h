// Keeps the rates of a store in memory over a restart, so that a process that starts again does not
// grant each subject a second burst.
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
  ~StateFile();  // Stop

  // Restores what the file has. No file is a first start; an error is one that cannot be read.
  BasicResult<bool, std::string> Load();
  // Writes the file every second, on a thread of its own.
  void Start();
  // Writes it a last time.
  void Stop();
  // Replaces the file. A crash leaves the old one or the new one.
  BasicResult<bool, std::string> Save();

 private:
  const std::string path_;
  MemoryStore& store_;
  const Clock& clock_;
  bool failed_ = false;  // of the thread: the last try
  PeriodicThread thread_;
};

}  // namespace tollgate::ratelimit
