// A file system for SQLite that knows what would survive a power cut. Everything is written to the
// real files, but only what was synced is known to be kept: at a cut, each write since the last
// sync of its file may be there or not, in any order, whole or in part. A sync is simulated: it
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
  // What is on the disk after a cut, by path. Files that are not SQLite's are not in it.
  using Image = std::map<std::string, std::string>;

  // One for the process: registered with the first call.
  static PowerCutVfs& Get();

  // The power is cut at the Nth write, truncation or sync from now on. The processes' own view goes
  // on undisturbed, so that the test can stop them.
  void CutAfter(int64_t events, uint64_t seed);
  bool cut() const;
  // Runs `record` unless the power was cut before: what it records is known to the world.
  void UnlessCut(const std::function<void()>& record);
  // After a cut.
  Image TakeImage();
  // Forgets all files, so that the paths may be used again.
  void Reset();

  // From now on syncs of files whose name ends so fail, and what they would have flushed is lost.
  // Empty: none.
  void FailSyncsOf(std::string suffix);
  int64_t opens_of(const std::string& path) const;
  int64_t syncs_of(const std::string& path) const;
  int64_t writes_of(const std::string& path) const;

  // --- for the callbacks of SQLite ---
  struct Write {
    int64_t number = 0;
    bool truncate = false;
    int64_t offset = 0;  // of a truncation: the new size
    std::string data;
  };
  // The content of one file, under its name or deleted.
  struct Inode {
    std::string durable;
    bool name_is_durable = false;
    std::deque<Write> pending;  // not synced
  };
  std::shared_ptr<Inode> OnOpen(const std::string& path);
  void OnWrite(const std::string& path, Inode& inode, std::string_view data, int64_t offset);
  void OnTruncate(Inode& inode, int64_t size);
  // False: it failed.
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
  // Deleted without a sync of their folder: they may be there again.
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
