// Stores local files: what `put` does with each, one at a time or many small ones together.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <sys/stat.h>

#include "codec/compression.h"
#include "pif/client/client.h"
#include "transfer/entries_import.h"
#include "transfer/header.h"
#include "transfer/tally.h"
#include "transfer/tree_options.h"

namespace pif::cli {

// The bits of a local file's mode that its copy gets.
inline constexpr std::uint32_t kModeBits = 0777;

// A local file and where it goes.
struct PutJob {
  std::string local;
  std::string target;
  std::uint32_t mode = 0644;
  std::uint64_t bytes = 0;                  // as it was found
  std::optional<std::int64_t> modified_ns;  // nothing: of a stream

  static PutJob of(const std::string& local, const std::string& target, const struct stat& about);
};

// The kinds of local files.
struct LocalFormat {
  std::string header;  // as `--header` has it
  bool has_record_length = false;
  TextKind text = TextKind::kPlain;
  std::string decompress;  // as `--decompress` has it; empty: texts of a kind, by their names

  // How a local file is compressed that is to be decompressed.
  Compression compression_of(const std::string& local) const;
};

// Any thread; each with a Client of its own.
class PutFiles {
 public:
  // create: of every file. All outlive this.
  PutFiles(const CreateOptions& create, const LocalFormat& format, const TreeOptions& tree,
           const std::atomic<bool>& interrupted, Tally& tally)
      : create_(create), format_(format), tree_(tree), interrupted_(interrupted), tally_(tally) {}

  // Whether the file may be one of a batch.
  bool fits_batch(const PutJob& job) const;
  // One file, by itself. fd: where its bytes come from; -1: it is opened here.
  [[nodiscard]] Status put_one(Client& client, const PutJob& job, int fd = -1) const;
  // Together. Failures are added to the tally's, but for those that end all.
  [[nodiscard]] Status put_batch(Client& client, const std::vector<PutJob>& jobs) const;

 private:
  struct Created;
  [[nodiscard]] Result<std::vector<PutJob>> new_ones(Client& client, const std::vector<PutJob>& jobs) const;
  [[nodiscard]] Status store(Client& client, const PutJob& job, int fd) const;
  [[nodiscard]] Status store_once(Client& client, const PutJob& job, int fd) const;
  // finish: after the last byte, whether these were all of the file.
  [[nodiscard]] Status store_bytes(Client& client, const PutJob& job, int fd,
                                   const std::function<Status()>& finish) const;
  [[nodiscard]] Result<BulkCounts> import(File& file, const PutJob& job, int fd) const;
  // By itself, after `file` of a batch was begun in a view that is not the newest any more.
  void put_again(Client& client, File& file, const PutJob& job) const;
  [[nodiscard]] Result<Header> take_header(int fd, const PutJob& job, CreateOptions& create) const;
  [[nodiscard]] Status fill(File& file, const PutJob& job) const;
  [[nodiscard]] Status commit(Client& client, std::vector<File>& files, const std::vector<const PutJob*>& jobs) const;
  CreateOptions options_for(const PutJob& job) const;
  void count(const File& file, const PutJob& job, const FileLength& file_length, std::uint64_t bytes) const;

  const CreateOptions& create_;
  const LocalFormat& format_;
  const TreeOptions& tree_;
  const std::atomic<bool>& interrupted_;
  Tally& tally_;
};

}  // namespace pif::cli
