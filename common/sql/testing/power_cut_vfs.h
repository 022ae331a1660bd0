// A file system for SQLite that knows which data would survive a power cut. Everything is written
// to the real files, but only synced data is known to be kept: at a cut, each write since the last
// sync of its file may be there or not, in any order, in whole or in part. A sync is simulated: it
// takes a moment and flushes nothing. For tests; it becomes SQLite's default file system.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <string_view>

namespace tollgate::sql::testing {

class PowerCutVfs {
 public:
  // The content of the disk after a cut, by path. Contains only SQLite's files.
  using Image = std::map<std::string, std::string>;

  // The instance of the process; the first call registers it.
  static PowerCutVfs& Get();

  // Cuts the power at the Nth write, truncation or sync from now on. The running processes see no
  // difference, so that the test can stop them.
  void CutAfter(int64_t events, uint64_t seed);
  bool cut() const;
  // Runs `record` unless the power was cut before: `record` stands for a result that became visible
  // outside.
  void UnlessCut(const std::function<void()>& record);
  // Call it after a cut.
  Image TakeImage();
  // Forgets all files, so that the paths may be used again.
  void Reset();

  // Makes syncs fail for files whose name has this suffix; their unsynced data is lost. Empty:
  // none.
  void FailSyncsOf(std::string suffix);
  int64_t opens_of(const std::string& path) const;
  int64_t syncs_of(const std::string& path) const;
  int64_t writes_of(const std::string& path) const;

  // --- for the callbacks of SQLite ---
  struct Write {
    int64_t number = 0;
    bool truncate = false;
    int64_t offset = 0;  // for a truncation: the new size
    std::string data;
  };
  // The content of a file, under its name or deleted.
  struct Inode {
    std::string durable;
    bool name_is_durable = false;
    std::deque<Write> pending;  // not synced
  };
  std::shared_ptr<Inode> OnOpen(const std::string& path);
  void OnWrite(const std::string& path, Inode& inode, std::string_view data, int64_t offset);
  void OnTruncate(Inode& inode, int64_t size);
  // Returns false if the sync fails.
  bool OnSync(const std::string& path, Inode& inode);
  void OnDelete(const std::string& path, bool durable);

 private:
  PowerCutVfs() = default;
  void Step();
  void Cut();
  std::string AfterCut(const Inode& inode);
  int64_t Random(int64_t below) {
    return std::uniform_int_distribution<int64_t>(0, below - 1)(random_);
  }

  mutable std::mutex mutex_;
  std::map<std::string, std::shared_ptr<Inode>> files_;
  // Deleted without a sync of their folder: they may reappear.
  std::map<std::string, std::shared_ptr<Inode>> deleted_;
  std::map<std::string, int64_t> opens_, syncs_, writes_;
  std::string failing_;
  std::mt19937_64 random_;
  int64_t number_ = 0;
  int64_t left_ = -1;
  bool cut_ = false;
  Image image_;
};

}  // namespace tollgate::sql::testing
